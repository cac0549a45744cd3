"""Baselines: one for all, one per server, paired by common options, or a chain."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.model import Suite
from redline.suite import Overrides, load_catalogue, load_suite
from tests.fakes.catalogues import FAMILY, problems_of, suite_of, write_catalogue

TEXT = """\
servers:
  - {use: fam.plain, with: {routes: [1, 128]}}
  - {use: fam.layered, with: {routes: [1, 128], log: [off, server-log]}}
  - slow.vanilla
BASELINE
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""


def text_of(baseline: str, servers: str | None = None) -> str:
    text = TEXT.replace("BASELINE", f"baseline: {baseline}")
    start, end = text.index("servers:"), text.index("baseline:")
    return text if servers is None else f"{text[:start]}servers: {servers}\n{text[end:]}"


def pairs_of(folder: Path, baseline: str, servers: str | None = None, overrides: Overrides | None = None) -> Suite:
    return suite_of(folder, text_of(baseline, servers), overrides)


def test_each_variant_is_compared_with_that_of_the_same_options(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "{fam.layered: fam.plain}")
    assert suite.baseline is None
    assert suite.baselines == {
        "fam.layered": "fam.plain",
        "fam.layered+log=server-log": "fam.plain",
        "fam.layered+routes=1": "fam.plain+routes=1",
        "fam.layered+log=server-log+routes=1": "fam.plain+routes=1",
    }
    assert suite.baseline_of("slow.vanilla") is None
    assert suite.group_of("fam.layered+routes=1") == suite.group_of("fam.plain+routes=1") == "fam.plain+routes=1"


def test_what_one_of_both_has_no_option_for_does_not_distinguish_them(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "{'fam.*': slow.vanilla}")
    assert set(suite.baselines.values()) == {"slow.vanilla"}
    assert len(suite.baselines) == 6


def test_a_glob_passes_over_the_baseline_and_the_first_key_that_matches_counts(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "{fam.layered+routes=1: slow.vanilla, 'fam.*': fam.plain}")
    assert suite.baselines == {
        "fam.layered+routes=1": "slow.vanilla",
        "fam.layered": "fam.plain",
        "fam.layered+log=server-log": "fam.plain",
        "fam.layered+log=server-log+routes=1": "fam.plain+routes=1",
    }


def test_a_star_pairs_all_others_by_options(tmp_path: Path) -> None:
    servers = "[{use: fam.plain, with: {routes: [1, 128]}}, {use: fam.layered, with: {routes: [1, 128]}}]"
    assert pairs_of(tmp_path, "{'*': fam.plain}", servers).baselines == {
        "fam.layered": "fam.plain",
        "fam.layered+routes=1": "fam.plain+routes=1",
    }


@pytest.mark.parametrize("named", ["fam.layered+routes=1+log=server-log", "fam.layered+log=server-log+routes=1"])
def test_options_may_stand_in_any_order_and_be_defaults(tmp_path: Path, named: str) -> None:
    as_value = pairs_of(tmp_path, f"{{slow.vanilla: {named}, {named}: fam.layered+routes=1+log=off}}")
    assert as_value.baselines == {
        "slow.vanilla": "fam.layered+log=server-log+routes=1",
        "fam.layered+log=server-log+routes=1": "fam.layered+routes=1",
    }
    assert pairs_of(tmp_path, named).baseline == "fam.layered+log=server-log+routes=1"


@pytest.mark.parametrize("named", ["fam.plain+routes=2", "fam.plain+routes=1+log=off", "fam.plain+routes=1+routes=128"])
def test_an_option_that_a_variant_has_not_names_none(tmp_path: Path, named: str) -> None:
    (problem,) = problems_of(tmp_path, text_of(f"{{slow.vanilla: {named}}}"))
    assert problem.message == f"there is no server `{named}` in this suite"


BOTH = "[{use: fam.plain, with: {routes: [1, 128]}}, {use: fam.layered, with: {routes: [1, 128]}}]"


def test_a_name_of_several_variants_pairs_by_options_though_it_is_a_slug_too(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "fam.plain", BOTH)
    assert suite.baseline is None
    assert suite.baselines == {"fam.layered": "fam.plain", "fam.layered+routes=1": "fam.plain+routes=1"}


def test_a_slug_with_its_options_is_that_variant_for_all_others(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "fam.plain+routes=1", BOTH)
    assert (suite.baseline, suite.baselines) == ("fam.plain+routes=1", {})


@pytest.mark.parametrize(
    "servers",
    [
        "[{use: fam.plain, with: {routes: [1, 128]}}, slow.vanilla]",  # it could be compared with either
        "[{use: fam.plain, with: {routes: [1, 128]}}]",  # nothing but its own variants
    ],
)
def test_where_not_every_variant_finds_its_partner_a_slug_is_that_variant_for_all(tmp_path: Path, servers: str) -> None:
    suite = pairs_of(tmp_path, "fam.plain", servers)
    assert (suite.baseline, suite.baselines) == ("fam.plain", {})


def test_a_slug_with_options_is_that_variant_for_all(tmp_path: Path) -> None:
    suite = pairs_of(tmp_path, "{fam.layered: fam.plain+routes=1}")
    assert set(suite.baselines.values()) == {"fam.plain+routes=1"}
    assert len(suite.baselines) == 4


def test_one_server_with_several_variants_is_the_baseline_of_those_with_its_options(tmp_path: Path) -> None:
    servers = (
        "[{use: fam.plain, with: {routes: [1, 128]}}, {use: fam.layered, with: {log: server-log, routes: [1, 128]}}]"
    )
    suite = pairs_of(tmp_path, "fam.layered", servers)
    assert suite.baseline is None
    assert suite.baselines == {
        "fam.plain": "fam.layered+log=server-log",
        "fam.plain+routes=1": "fam.layered+log=server-log+routes=1",
    }


@pytest.mark.parametrize(
    ("baseline", "servers", "says", "hint"),
    [
        ("{fam.layred: fam.plain}", None, "no server of this suite matches `fam.layred`", "did you mean `fam.layered`"),
        ("{'x.*': fam.plain}", None, "no server of this suite matches `x.*`", "this suite has: fam.plain+routes=1,"),
        ("{fam.layered: fam.plan}", None, "no server `fam.plan` in this suite", "did you mean `fam.plain`?"),
        ("{fam.layered: fam.plain}", "[fam.layered]", "`fam.plain` is not among the servers", "add it to `servers`"),
        (
            "{fam.layered: fam.plain}",
            "[{use: fam.plain, with: {routes: 1}}, fam.layered]",
            "`fam.plain` has no variant with the options of `fam.layered`",
            "give both the same options in `servers`, or name one of: fam.plain+routes=1",
        ),
        (
            "{'*.plain': fam.layered}",
            "[fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]",
            "`fam.plain` could be compared with 2 variants of `fam.layered`",
            "choose one of: fam.layered, fam.layered+log=server-log, with `fam.plain` as the key",
        ),
        ("{fam.plain: fam.plain}", "[fam.plain]", "would be compared with itself", "remove it"),
        (
            "{fam.layered: fam.plain, fam.plain: slow.vanilla, slow.vanilla: fam.layered}",
            "[fam.layered, fam.plain, slow.vanilla]",
            "form a circle: fam.layered -> fam.plain -> slow.vanilla -> fam.layered",
            "a chain begins with a server without a baseline",
        ),
        (
            "{fam.layered+routes=1: fam.layered, fam.layered: fam.layered+routes=1}",
            "[{use: fam.layered, with: {routes: [1, 128]}}]",
            "form a circle: fam.layered+routes=1 -> fam.layered -> fam.layered+routes=1",
            "remove one of these keys",
        ),
        (
            "{'fam.layered+*routes=1': fam.layered}",
            "[{use: fam.layered, with: {routes: 1, log: server-log}}, fam.layered]",
            "no variant of `fam.layered` differs from `fam.layered+log=server-log+routes=1` in a single property",
            "name one of: fam.layered, with `fam.layered+log=server-log+routes=1` as the key",
        ),
        (
            "{'fam.layered+log=server-log+*': fam.layered}",
            "[{use: fam.layered, with: {routes: [1, 128], log: [off, server-log]}}]",
            "`fam.layered+log=server-log+routes=1` could be compared with 2 variants of `fam.layered`",
            "choose one of: fam.layered+routes=1, fam.layered+log=server-log",
        ),
        ("{}", None, "must have at least 1, not 0", "the server that all others are compared with"),
        ("{fam.layered: 1}", None, "must be text", "quote it"),
        ("5", None, "must be text", "quote it"),
    ],
)
def test_what_is_wrong_with_a_baseline(
    tmp_path: Path, baseline: str, servers: str | None, says: str, hint: str
) -> None:
    first, *_ = problems_of(tmp_path, text_of(baseline, servers))
    assert says in first.message
    assert hint in first.hint
    assert first.place is not None
    assert first.place.line
    assert (first.place.field or "").startswith("baseline")


def test_a_baseline_may_have_one_itself_and_its_group_is_the_whole_chain(tmp_path: Path) -> None:
    suite = pairs_of(
        tmp_path, "{fam.layered: fam.plain, fam.plain: slow.vanilla}", "[fam.layered, fam.plain, slow.vanilla]"
    )
    assert suite.chain_of("fam.layered") == ("slow.vanilla", "fam.plain", "fam.layered")
    assert {suite.group_of(variant.slug) for variant in suite.variants} == {"slow.vanilla"}
    assert suite.baseline_of("slow.vanilla") is None
    without = pairs_of(
        tmp_path,
        "{fam.layered: fam.plain, fam.plain: slow.vanilla}",
        "[fam.layered, fam.plain, slow.vanilla]",
        Overrides(servers=("fam.layered", "slow.*")),
    )
    assert without.baselines == {}
    assert without.group_of("fam.layered") == "fam.layered"


CHAIN = "{fam.plain: slow.vanilla, fam.layered: fam.plain, fam.layered+log=server-log: fam.layered}"


def test_a_slug_with_options_goes_before_the_name_of_its_server(tmp_path: Path) -> None:
    servers = "[slow.vanilla, fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]"
    suite = pairs_of(tmp_path, CHAIN, servers)
    assert suite.baselines == {
        "fam.plain": "slow.vanilla",
        "fam.layered": "fam.plain",
        "fam.layered+log=server-log": "fam.layered",
    }


def test_a_glob_for_some_variants_of_a_server_pairs_them_with_its_others(tmp_path: Path) -> None:
    baseline = "{fam.layered+log=*: fam.layered, fam.layered: fam.plain}"
    assert pairs_of(tmp_path, baseline).baselines == {
        "fam.layered": "fam.plain",
        "fam.layered+routes=1": "fam.plain+routes=1",
        "fam.layered+log=server-log": "fam.layered",
        "fam.layered+log=server-log+routes=1": "fam.layered+routes=1",
    }


def test_two_that_are_named_by_their_slugs_are_compared_whatever_their_options_are(tmp_path: Path) -> None:
    servers = "[{use: fam.layered, with: {routes: 1, log: [off, server-log]}}, fam.plain]"
    suite = pairs_of(tmp_path, "{fam.layered+routes=1: fam.plain}", servers)
    assert suite.baselines == {"fam.layered+routes=1": "fam.plain"}
    log = "[fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]"
    assert pairs_of(tmp_path, "{fam.plain: fam.layered}", log).baselines == {"fam.plain": "fam.layered"}
    of_itself = "[{use: fam.plain, with: {routes: [1, 128]}}]"
    assert pairs_of(tmp_path, "{fam.plain: fam.plain+routes=1}", of_itself).baselines == {
        "fam.plain": "fam.plain+routes=1"
    }


@pytest.mark.parametrize(
    ("baseline", "servers", "pairs"),
    [
        (
            "{fam.plain+http2: fam.plain}",
            "[fam.plain, {use: fam.plain, http: 2}]",
            {"fam.plain+http2": "fam.plain"},
        ),
        (
            "{fam.layered+http2: fam.plain}",
            "[fam.plain, {use: fam.layered, http: 2}]",
            {"fam.layered+http2": "fam.plain"},
        ),
        (
            "{'fam.plain+*http2*': fam.plain}",
            "[{use: fam.plain, with: {routes: [1, 128]}}, {use: fam.plain, http: 2, with: {routes: [1, 128]}}]",
            {"fam.plain+http2": "fam.plain", "fam.plain+routes=1+http2": "fam.plain+routes=1"},
        ),
        (
            "{fam.secure: fam.plain}",
            "[fam.plain, fam.secure]",
            {"fam.secure": "fam.plain"},
        ),
    ],
)
def test_a_layer_may_be_a_protocol(tmp_path: Path, baseline: str, servers: str, pairs: dict[str, str]) -> None:
    secure = """  secure:
    about: the same over TLS
    start: {command: ["{folder}/out/server", --port, "{port}", --routes, "{routes}", --tls]}
    tls: {server_name: localhost}
"""
    family = FAMILY.replace("runtime: native\n", "runtime: native\nhttp: [1.1, 2]\n") + secure
    file = tmp_path / "some.yaml"
    file.write_text(text_of(baseline, servers), encoding="utf-8")
    suite = load_suite(file, load_catalogue(write_catalogue(tmp_path / "catalogue", fam=family)))
    assert suite.baselines == pairs


def test_another_protocol_is_no_partner(tmp_path: Path) -> None:
    family = FAMILY.replace("runtime: native\n", "runtime: native\nhttp: [1.1, 2]\n")
    file = tmp_path / "some.yaml"
    file.write_text(text_of("{fam.layered: fam.plain}", "[{use: fam.plain, http: 2}, fam.layered]"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_suite(file, load_catalogue(write_catalogue(tmp_path / "catalogue", fam=family)))
    (problem,) = caught.value.problems
    assert problem.message == "`fam.plain` has no variant with the protocol of `fam.layered`"
    assert "name one of: fam.plain+http2" in problem.hint


def test_a_problem_of_servers_is_not_reported_again_as_one_of_baselines(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, text_of("{fam.layered: fam.plain}", "[fam.plian, fam.layered]"))
    assert "no server `fam.plian` in the catalogue" in problem.message


@pytest.mark.parametrize(
    ("globs", "pairs"),
    [
        (("fam.*",), 4),
        (("fam.layered", "fam.plain+routes=1"), 2),
        (("fam.layered",), 0),
        (("*routes=1",), 2),
    ],
)
def test_pairs_of_which_one_is_not_selected_are_dropped(tmp_path: Path, globs: tuple[str, ...], pairs: int) -> None:
    suite = pairs_of(tmp_path, "{fam.layered: fam.plain}", overrides=Overrides(servers=globs))
    slugs = {variant.slug for variant in suite.variants}
    assert len(suite.baselines) == pairs
    assert {*suite.baselines, *suite.baselines.values()} <= slugs
