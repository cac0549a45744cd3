"""A command line selects by glob and replaces numbers; an empty selection lists what there is."""

from pathlib import Path

import pytest

from redline.model import Closed, Open, Share, Suite
from redline.suite import Overrides
from tests.fakes.catalogues import problems_of, suite_of

TEXT = """\
servers: [fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]
baseline: fam.plain
ceiling: top.null
scenarios: [Get, GetMulti, Post]
loads:
  saturate: {closed: {users: 64}, for: 1s}
  steady: {open: {rate: 100}, for: 2s}
trials: 5
seed: 3
"""
OPEN_ONLY = TEXT.replace("  saturate: {closed: {users: 64}, for: 1s}\n", "")


def slugs(suite: Suite) -> list[str]:
    return [variant.slug for variant in suite.variants]


def test_without_overrides_nothing_changes(tmp_path: Path) -> None:
    assert suite_of(tmp_path, TEXT, Overrides()) == suite_of(tmp_path, TEXT)


@pytest.mark.parametrize(
    ("globs", "chosen"),
    [
        (("fam.*",), ["fam.plain", "fam.layered", "fam.layered+log=server-log"]),
        (("fam.layered",), ["fam.layered", "fam.layered+log=server-log"]),
        (("fam.layered+*",), ["fam.layered+log=server-log"]),
        (("*+log=server-log", "fam.plain"), ["fam.plain", "fam.layered+log=server-log"]),
    ],
)
def test_servers_are_selected_by_slug_or_name(tmp_path: Path, globs: tuple[str, ...], chosen: list[str]) -> None:
    suite = suite_of(tmp_path, TEXT, Overrides(servers=globs))
    assert slugs(suite) == chosen
    assert suite.baseline == ("fam.plain" if "fam.plain" in chosen else None)
    assert suite.ceiling is not None


def test_scenarios_are_selected_in_the_order_of_the_suite(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, TEXT, Overrides(scenarios=("Post", "Get")))
    assert [scenario.name for scenario in suite.scenarios] == ["Get", "Post"]
    suite = suite_of(tmp_path, TEXT, Overrides(scenarios=("Get*",)))
    assert [scenario.name for scenario in suite.scenarios] == ["Get", "GetMulti"]


def test_loads_are_selected_with_those_that_they_are_a_share_of(tmp_path: Path) -> None:
    half = "  half: {open: {rate: 50% of saturate, connections: 64}, for: 1s}\ntrials"
    text = TEXT.replace("trials", half, 1)
    assert [load.name for load in suite_of(tmp_path, text, Overrides(loads=("steady",))).loads] == ["steady"]
    assert [load.name for load in suite_of(tmp_path, text, Overrides(loads=("ha*",))).loads] == ["saturate", "half"]


def test_numbers_are_replaced(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, TEXT, Overrides(users=8, duration_ns=25_000_000_000, trials=2, seed=0))
    assert suite.loads[0].shape == Closed(users=8)
    assert suite.loads[1].shape == Open(rate_per_s=100, arrivals="poisson", connections=64)
    assert [load.duration_ns for load in suite.loads] == [25_000_000_000, 25_000_000_000]
    assert (suite.trials, suite.seed) == (2, 0)


@pytest.mark.parametrize(
    ("text", "overrides", "says", "hint"),
    [
        (TEXT, Overrides(servers=("fam.plian",)), "no server of this suite matches `fam.plian`", "did you mean"),
        (TEXT, Overrides(servers=("zzz.*",)), "matches `zzz.*`", "this suite has: fam.plain, fam.layered, fam"),
        (TEXT, Overrides(servers=("slow.*",)), "matches `slow.*`", "the catalogue has it: add it to `servers`"),
        (TEXT, Overrides(servers=("top.null",)), "matches `top.null`", "is this suite's ceiling and is run anyway"),
        (TEXT, Overrides(servers=("fam.plain", "x")), "matches `x`", "this suite has: fam.plain"),
        (TEXT, Overrides(scenarios=("post",)), "no scenario of this suite matches `post`", "did you mean `Post`?"),
        (TEXT, Overrides(loads=("stedy",)), "no load of this suite matches `stedy`", "did you mean `steady`?"),
        (OPEN_ONLY, Overrides(users=8), "no closed load", "`closed: {users: ...}`"),
        (TEXT, Overrides(users=0), "-u must be 1 to 1000000, not 0", "in that range"),
        (TEXT, Overrides(trials=0), "--trials must be 1 to 1000, not 0", "in that range"),
        (TEXT, Overrides(seed=-1), "--seed must be 0 to", "in that range"),
        (TEXT, Overrides(duration_ns=0), "-d must be 1ms to 24h", "25s"),
    ],
)
def test_what_cannot_be_overridden_so(tmp_path: Path, text: str, overrides: Overrides, says: str, hint: str) -> None:
    (problem,) = problems_of(tmp_path, text, overrides)
    assert says in problem.message
    assert hint in problem.hint


def test_every_problem_of_the_overrides_at_once(tmp_path: Path) -> None:
    overrides = Overrides(servers=("a", "b"), scenarios=("c",), users=0, duration_ns=0, trials=0, seed=-1)
    assert len(problems_of(tmp_path, TEXT, overrides)) == 7


def test_loads_that_an_override_makes_equal_are_refused(tmp_path: Path) -> None:
    text = TEXT.replace("  steady", "  longer: {closed: {users: 64}, for: 2s}\n  steady")
    (problem,) = problems_of(tmp_path, text, Overrides(duration_ns=5_000_000_000))
    assert problem.message == "the loads `saturate` and `longer` would be the same"


SEVERAL = TEXT.replace(
    "  saturate: {closed: {users: 64}, for: 1s}\n",
    "  one: {closed: {users: 1}, for: 1s}\n  many: {closed: {users: 64}, for: 1s}\n"
    "  deep: {closed: {users: 64, depth: 4}, for: 1s}\n",
)


@pytest.mark.parametrize(
    ("users", "names"),
    [(64, ["many", "deep", "steady"]), (1, ["one", "steady"]), (8, ["users8", "deep", "steady"])],
)
def test_users_select_the_loads_that_have_them_and_else_replace_those_of_all(
    tmp_path: Path, users: int, names: list[str]
) -> None:
    loads = suite_of(tmp_path, SEVERAL, Overrides(users=users)).loads
    assert [load.name for load in loads] == names
    assert {load.shape.users for load in loads if isinstance(load.shape, Closed)} == {users}


def test_several_that_become_one_have_a_name_of_what_they_are_now(tmp_path: Path) -> None:
    text = SEVERAL.replace("  steady", "  users8: {open: {rate: 50}, for: 2s}\n  steady")
    names = [load.name for load in suite_of(tmp_path, text, Overrides(users=8)).loads]
    assert names == ["one", "deep", "users8", "steady"]  # where another load has that name, the first keeps its own
    alone = [load.name for load in suite_of(tmp_path, TEXT, Overrides(users=8)).loads]
    assert alone == ["saturate", "steady"]


def test_a_share_of_the_load_that_several_become_stays_one_of_it(tmp_path: Path) -> None:
    text = SEVERAL.replace("rate: 100", "rate: 50% of one")
    loads = {load.name: load for load in suite_of(tmp_path, text, Overrides(users=8)).loads}
    assert list(loads) == ["users8", "deep", "steady"]
    assert loads["steady"].share == Share(share=0.5, of="users8")


RAMP = "  ramp: {closed: {users: 0, ramp: {to: 64, over: 1s}}, for: 1s}\n  steady"


def test_a_load_whose_users_change_is_left_out_or_stands_in_the_way(tmp_path: Path) -> None:
    text = TEXT.replace("  steady", RAMP)
    assert [load.name for load in suite_of(tmp_path, text, Overrides(users=64)).loads] == ["saturate", "steady"]
    (problem,) = problems_of(tmp_path, text, Overrides(users=8))
    assert problem.message == "users are given, but those of the load `ramp` change in stages"


def test_a_share_of_a_load_that_the_users_leave_out_is_a_problem(tmp_path: Path) -> None:
    text = SEVERAL.replace("rate: 100", "rate: 50% of one")
    assert len(suite_of(tmp_path, text, Overrides(users=1)).loads) == 2
    (problem,) = problems_of(tmp_path, text, Overrides(users=64))
    assert problem.message == "the rate of `steady` is a share of `one`, which is left out with 64 users"


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ((("log", "off"),), ["fam.plain", "fam.layered"]),
        ((("log", "server-log"),), ["fam.plain", "fam.layered+log=server-log"]),
        ((("log", "off"), ("log", "server-log")), ["fam.plain", "fam.layered", "fam.layered+log=server-log"]),
        ((("log", "off"), ("routes", "128")), ["fam.plain", "fam.layered"]),
    ],
)
def test_options_keep_the_variants_that_have_the_value_or_not_the_option(
    tmp_path: Path, options: tuple[tuple[str, str], ...], chosen: list[str]
) -> None:
    assert slugs(suite_of(tmp_path, TEXT, Overrides(options=options))) == chosen


@pytest.mark.parametrize(
    ("overrides", "says", "hint"),
    [
        (Overrides(options=(("lgo", "off"),)), "no server of this suite has an option `lgo`", "did you mean `log`?"),
        (Overrides(options=(("log", "on"),)), "no server of this suite has log=on", "this suite has: off, server-log"),
        (Overrides(options=(("routes", "1"),)), "no server of this suite has routes=1", "this suite has: 128"),
        (
            Overrides(servers=("*server-log",), options=(("log", "off"),)),
            "no server matches both -s and -w",
            "leave out -s or -w",
        ),
    ],
)
def test_options_that_select_nothing(tmp_path: Path, overrides: Overrides, says: str, hint: str) -> None:
    (problem,) = problems_of(tmp_path, TEXT, overrides)
    assert says in problem.message
    assert hint in problem.hint


SCALED = """\
servers: [fam.plain]
scenarios: [Get]
warmup_by: r10k
loads:
  saturate: {closed: {users: 8}, for: 1s}
  half: {open: {rate: 50% of saturate, connections: 4}, for: 1s}
  r10k: {open: {rate: 10000, connections: 4}, for: 1s}
  ramp: {open: {rate: 1000, connections: 4, ramp: {to: 3000, over: 1s}}, for: 1s}
"""


def test_a_factor_scales_the_rates_that_loads_have_of_their_own_and_names_say_so(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SCALED, Overrides(scale=0.125))
    assert [load.name for load in suite.loads] == ["saturate", "half", "r10k-12_5pct", "ramp-12_5pct"]
    *_, constant, ramp = (load.shape for load in suite.loads)
    assert isinstance(constant, Open)
    assert isinstance(ramp, Open)
    assert (constant.rate_per_s, ramp.rate_per_s, ramp.stages[0].to) == (1250, 125, 375)
    assert suite.warmup_by == suite.loads[2]


def test_a_factor_of_one_changes_nothing(tmp_path: Path) -> None:
    assert suite_of(tmp_path, SCALED, Overrides(scale=1.0)) == suite_of(tmp_path, SCALED)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(scale=0.5, loads=("half",)), "no load of this suite has a rate of its own"),
        (Overrides(scale=0.5, loads=("r10k-50pct",)), "no load of this suite matches `r10k-50pct`"),
        (Overrides(users=8, loads=("nothing",)), "no load of this suite matches `nothing`"),
        (Overrides(scale=2000.0, loads=("r10k",)), "--scale makes the rate of `r10k-200000pct` more than 10,000,000/s"),
    ],
)
def test_a_factor_that_cannot_be(tmp_path: Path, overrides: Overrides, says: str) -> None:
    (problem,) = problems_of(tmp_path, SCALED, overrides)
    assert says in problem.message
    assert problem.hint
