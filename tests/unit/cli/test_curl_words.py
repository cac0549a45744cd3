"""Options of curl and names of cipher suites that a command does not know: what is said in their place."""

import re
from pathlib import Path

import pytest

from redline.cli import curl_words
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags
from redline.cli.curl_words import instead_of_curl
from redline.errors import WrongValueError
from redline.schema.ciphers import OF_1_2, OF_1_3, check_ciphers

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "way-in.md"
OPTIONS = sorted(curl_words._HINTS)
LONG_NAMES = {"--cookie", "--head", "--header", "--insecure", "--proxy", "--referer", "--user-agent"}
"""Flags of Redline too, which the page names by their letter."""
OF_REQUESTS = """
--abstract-unix-socket --alt-svc --anyauth --aws-sigv4 --basic --cacert --capath -E --cert --cert-status --cert-type
--ciphers --compressed -K --config --connect-timeout --connect-to -C --continue-at -b --cookie -c --cookie-jar
--crlf --crlfile --curves -d --data --data-ascii --data-binary --data-raw --data-urlencode --delegation --digest -q
--disable --disallow-username-in-url --dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers --doh-cert-status
--doh-insecure --doh-url --egd-file --engine --etag-compare --etag-save --expect100-timeout -f --fail --fail-early
--fail-with-body --false-start -F --form --form-escape --form-string -G --get -g --globoff
--happy-eyeballs-timeout-ms --haproxy-protocol -I --head -H --header --hsts --http0.9 -0 --http1.0 --http1.1 --http2
--http2-prior-knowledge --http3 --http3-only --ignore-content-length -k --insecure --interface -4 --ipv4 -6 --ipv6
--json -j --junk-session-cookies --keepalive-time --key --key-type --krb --limit-rate --local-port -L --location
--location-trusted --login-options --max-filesize --max-redirs -m --max-time --negotiate -n --netrc --netrc-file
--netrc-optional -: --next --no-alpn --no-keepalive --no-npn --no-sessionid --noproxy --ntlm --ntlm-wb
--oauth2-bearer -Z --parallel --parallel-immediate --parallel-max --pass --path-as-is --pinnedpubkey --post301
--post302 --post303 --preproxy --proto --proto-default --proto-redir -x --proxy --proxy-anyauth --proxy-basic
--proxy-cacert --proxy-capath --proxy-cert --proxy-cert-type --proxy-ciphers --proxy-crlfile --proxy-digest
--proxy-header --proxy-insecure --proxy-key --proxy-key-type --proxy-negotiate --proxy-ntlm --proxy-pass
--proxy-pinnedpubkey --proxy-service-name --proxy-ssl-allow-beast --proxy-ssl-auto-client-cert --proxy-tls13-ciphers
--proxy-tlsauthtype --proxy-tlspassword --proxy-tlsuser --proxy-tlsv1 -U --proxy-user --proxy1.0 -p --proxytunnel
--random-file -r --range --rate --raw -e --referer -X --request --request-target --resolve --retry
--retry-all-errors --retry-connrefused --retry-delay --retry-max-time --sasl-authzid --sasl-ir --service-name
--socks4 --socks4a --socks5 --socks5-basic --socks5-gssapi --socks5-gssapi-nec --socks5-gssapi-service
--socks5-hostname -Y --speed-limit -y --speed-time --ssl --ssl-allow-beast --ssl-auto-client-cert --ssl-no-revoke
--ssl-reqd --ssl-revoke-best-effort -2 --sslv2 -3 --sslv3 --suppress-connect-headers --tcp-fastopen --tcp-nodelay -z
--time-cond --tls-max --tls13-ciphers --tlsauthtype --tlspassword --tlsuser -1 --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2
--tlsv1.3 --tr-encoding --unix-socket -T --upload-file --url --url-query -B --use-ascii -u --user -A --user-agent
"""


def test_an_option_of_curl_has_a_hint() -> None:
    assert instead_of_curl("redline load: no such option: --url") == "give the URL alone"
    assert instead_of_curl("redline ab: no such option: --data (Possible options: --stage)").startswith("use `--body")
    for other in ("redline run: no such option: --url", "redline load: no such option: --frob", "redline load: --url"):
        assert not instead_of_curl(other)


def test_no_command_has_an_option_with_a_hint_and_all_have_those_that_the_page_calls_the_same() -> None:
    page = PAGE.read_text()
    own = {
        option
        for flags in (LoadFlags, LimitFlags, AbFlags)
        for declared in flags.declared().values()
        for option in declared.param_decls or ()
    }
    assert "--proxy" in own
    assert not own.intersection(OPTIONS)
    same = page[page.index("These are the same:") : page.index("Any other option")]
    assert set(re.findall(r"`(--?[\w-]+)", same)) <= own


def test_the_page_shows_a_hint_as_a_command_says_it() -> None:
    ((error, hint),) = re.findall(r"```text\nredline: (no such option.*)\n  hint: (.*)\n```", PAGE.read_text())
    assert instead_of_curl(f"redline load: {error}") == hint


def test_each_option_of_curl_for_requests_is_known() -> None:
    """The options of curl 7.88 but those of other protocols, and of what it prints and keeps."""
    page = PAGE.read_text()
    other = page[page.index("These mean other things here") :]
    known = {*OPTIONS, *re.findall(r"`(--?[\w-]+)", page[page.index("These are the same:") :])}
    assert {"-d", "--json", "--request", "-m"} <= set(re.findall(r"`(--?[\w-]+)`", other))
    assert not [option for option in OF_REQUESTS.split() if option not in {*known, *LONG_NAMES}]


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
