"""Options of curl and names of cipher suites that a command does not know: what is said in their place."""

from pathlib import Path

import pytest

from redline.cli import curl_words
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags
from redline.cli.curl_words import instead_of_curl
from redline.errors import WrongValueError
from redline.suite.ciphers import OF_1_2, OF_1_3, check_ciphers

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "way-in.md"
OPTIONS = sorted(curl_words._HINTS)


def test_an_option_of_curl_has_a_hint() -> None:
    assert instead_of_curl("redline load: no such option: -k") == "use `--insecure`"
    assert instead_of_curl("redline ab: no such option: --data (Possible options: --stage)").startswith("use `--body")
    for other in ("redline run: no such option: -k", "redline load: no such option: --frob", "redline load: -k"):
        assert not instead_of_curl(other)


def test_the_page_lists_them_and_no_command_has_them() -> None:
    page = PAGE.read_text()
    own = {
        option
        for flags in (LoadFlags, LimitFlags, AbFlags)
        for declared in flags.declared().values()
        for option in declared.param_decls or ()
    }
    assert "--proxy" in own
    for option in OPTIONS:
        assert f"`{option}`" in page
        assert option not in own


@pytest.mark.parametrize(
    ("names", "versions", "says"),
    [
        (["NOPE"], ["1.2", "1.3"], "`NOPE` is not a cipher suite"),
        (["ECDHE-RSA-AES128-GCM-SHA256"], ["1.2", "1.3"], "none of the suites is one of TLS 1.3"),
        (["TLS_AES_128_GCM_SHA256"], ["1.2"], "none of the suites is one of TLS 1.2"),
    ],
)
def test_suites_that_cannot_be_are_refused(names: list[str], versions: list[str], says: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        check_ciphers(names, versions)
    assert says in caught.value.message
    assert OF_1_3[0] in caught.value.hint or OF_1_2[0] in caught.value.hint


def test_suites_of_both_names_are_taken() -> None:
    check_ciphers([], ["1.2", "1.3"])
    check_ciphers([name.lower() for name in (*OF_1_2, *OF_1_3)], ["1.2", "1.3"])
