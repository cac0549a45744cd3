"""Which server each is compared with: one for all, or one by server, paired by the options that both have."""

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


def test_what_one_of_both_has_no_option_for_does_not_tell_them_apart(tmp_path: Path) -> None:
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
            "{fam.plain: fam.layered}",
            "[fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]",
            "`fam.plain` could be compared with 2 variants of `fam.layered`",
            "choose one of: fam.layered, fam.layered+log=server-log",
        ),
        ("{fam.plain: fam.plain}", "[fam.plain]", "would be compared with itself", "remove it"),
        (
            "{fam.layered: fam.plain, fam.plain: slow.vanilla}",
            "[fam.layered, fam.plain, slow.vanilla]",
            "`fam.plain` is the baseline of `fam.layered` and has one itself: `slow.vanilla`",
            "name `slow.vanilla` here too",
        ),
        ("{}", None, "must have at least 1, not 0", "the server that the others are compared with"),
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


def test_what_is_spoken_differently_is_no_partner(tmp_path: Path) -> None:
    family = FAMILY.replace("runtime: native\n", "runtime: native\nhttp: [1.1, 2]\n")
    file = tmp_path / "some.yaml"
    file.write_text(text_of("{fam.layered: fam.plain}", "[{use: fam.plain, http: 2}, fam.layered]"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_suite(file, load_catalogue(write_catalogue(tmp_path / "catalogue", fam=family)))
    (problem,) = caught.value.problems
    assert problem.message == "`fam.plain` has no variant with the options of `fam.layered`"


def test_a_problem_of_servers_is_not_told_again_as_one_of_baselines(tmp_path: Path) -> None:
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
