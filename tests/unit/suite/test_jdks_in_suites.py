"""`jvm` in a suite, `jdk` in suites and entries: what is accepted, what is skipped, what is refused."""

from pathlib import Path

import pytest

from redline.errors import Problem, UsageError
from redline.model import Suite
from redline.suite import Overrides, load_catalogue, load_suite, make_plan
from tests.fakes.catalogues import write_catalogue

JVM = """\
runtime: jvm
build: {run: [make], inputs: [src/**], outputs: [out]}
options:
  jdk: {values: [17, 21], default: 21}
servers:
  plain:
    about: runs on both
    start: {command: ["{java}", "{gc}", "{port}"]}
    options:
      gc: {values: [G1, Parallel], default: G1}
  virtual:
    about: runs on the newer alone
    start: {command: ["{java}", "{port}"]}
    options:
      jdk: {values: [21], default: 21}
"""

SUITE = """\
servers: [two.plain, two.virtual, fam.plain]
jvm: {jdk: [17, 21], gc: Parallel}
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""


def read(folder: Path, text: str, family: str = JVM) -> Suite:
    catalogue = load_catalogue(write_catalogue(folder / "catalogue", two=family))
    (folder / "some.yaml").write_text(text)
    return load_suite(folder / "some.yaml", catalogue, Overrides())


def problems(folder: Path, text: str, family: str = JVM) -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        read(folder, text, family)
    assert all(problem.place is not None and problem.place.line and problem.hint for problem in caught.value.problems)
    return caught.value.problems


def slugs(suite: Suite) -> list[str]:
    return [variant.slug for variant in suite.variants]


def test_it_is_reported_once_for_every_server_on_the_jvm_that_has_the_option(tmp_path: Path) -> None:
    assert slugs(read(tmp_path, SUITE)) == [
        "two.plain+gc=Parallel+jdk=17",
        "two.plain+gc=Parallel",
        "two.virtual+jdk=17",
        "two.virtual",
        "fam.plain",
    ]


def test_what_a_server_says_itself_goes_before(tmp_path: Path) -> None:
    own = SUITE.replace("two.plain,", "{use: two.plain, with: {jdk: 17}},")
    assert slugs(read(tmp_path, own))[:1] == ["two.plain+gc=Parallel+jdk=17"]
    assert len(read(tmp_path, own).variants) == 4


def test_a_ceiling_keeps_its_defaults(tmp_path: Path) -> None:
    suite = read(tmp_path, SUITE + "ceiling: two.plain\n")
    assert suite.ceiling is not None
    assert suite.ceiling.slug == "two.plain"


def test_the_cells_of_a_server_that_does_not_take_a_value_are_skipped_with_the_reason(tmp_path: Path) -> None:
    plan = make_plan(read(tmp_path, SUITE), {"two.virtual+jdk=17": "never asked"})
    assert [(skipped.slug, skipped.reason) for skipped in plan.skipped] == [
        ("two.virtual+jdk=17.Get.saturate", "two.virtual does not take jdk 17, only 21")
    ]
    assert len(plan.cells) == 4


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("{jdk: 18}", "`18` is not a value of `jdk` of any JVM server of this suite", "it takes: 17, 21, `path` for"),
        ('{jdk: "21"}', "`21` is not a value of `jdk` of any JVM server of this suite", "write it without quotes"),
        ("{jdk: opt/jdk}", "`opt/jdk` is not a value of `jdk`", "or the absolute path of a JDK's home"),
        ("{gc: Paralel}", "`Paralel` is not a value of `gc`", "did you mean `Parallel`?"),
        ("{gcc: G1}", "no JVM server of this suite has an option `gcc`", "did you mean `gc`?"),
        ("{log: off}", "no JVM server of this suite has an option `log`", "their options: jdk, gc"),
        ("{gc: [G1, G1]}", "`G1` is given twice", "remove one"),
        ("{gc: []}", "an axis needs at least one value", "remove the option to take its default"),
    ],
)
def test_what_none_takes_is_reported(tmp_path: Path, said: str, message: str, hint: str) -> None:
    found = problems(tmp_path, SUITE.replace("{jdk: [17, 21], gc: Parallel}", said))
    assert len(found) == 1
    assert message in found[0].message
    assert hint in found[0].hint
    assert found[0].place is not None
    assert found[0].place.line == 2
    assert str(found[0].place.field).startswith("jvm.")


def test_a_jvm_for_no_server_is_reported(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, SUITE.replace("two.plain, two.virtual, ", ""))
    assert found.message == "`jvm` applies to no server of this suite"
    assert found.hint == "remove it, or add a server whose runtime is `jvm`, as `redline list` shows it"


def test_a_jvm_that_every_server_overrides_is_reported(tmp_path: Path) -> None:
    own = SUITE.replace("two.plain,", "{use: two.plain, with: {gc: G1}},")
    (found,) = problems(tmp_path, own)
    assert found.message == "`gc` applies to no server of this suite: all servers that have it set it in `with`"


def test_with_a_wrong_server_only_that_is_reported(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, SUITE.replace("two.plain, two.virtual", "two.plane"))
    assert "there is no server `two.plane`" in found.message


def test_a_jdk_may_be_a_home_or_that_of_the_path(tmp_path: Path) -> None:
    text = SUITE.replace("jdk: [17, 21]", "jdk: [path, /opt/graal vm/25, /srv/25/, /srv/./x/../25x]")
    suite = read(tmp_path, text.replace("two.virtual, ", ""))
    assert [variant.options["jdk"] for variant in suite.variants[:-1]] == [
        "path",
        "/opt/graal vm/25",
        "/srv/25",
        "/srv/25x",
    ]
    values = [slug.partition("jdk=")[2] for slug in slugs(suite)[:-1]]
    assert values[0] == "path"
    assert [text.rpartition("-")[0] for text in values[1:]] == ["25", "25", "25x"]
    assert len(set(values)) == 4
    assert all("/" not in slug for slug in slugs(suite))
    assert make_plan(suite).skipped == ()


def test_one_home_written_twice_is_reported(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, SUITE.replace("jdk: [17, 21]", "jdk: [/opt/jdk, /opt/jdk/]"))
    assert found.message == "`/opt/jdk/` is given twice"


def test_a_home_of_a_single_server_too(tmp_path: Path) -> None:
    own = SUITE.replace("two.plain,", "{use: two.plain, with: {jdk: /opt/jdk}},")
    assert read(tmp_path, own).variants[0].options["jdk"] == "/opt/jdk"
    (found,) = problems(tmp_path, own.replace("/opt/jdk", "18"))
    assert found.message == "`18` is not a value of `jdk` of two.plain"
    assert "absolute path" in found.hint


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("  jdk: {values: [17, 21], default: 21}\n", "  heap: {values: [1g], default: 1g}\n", "", ""),
        (
            '"{java}", "{gc}"',
            'java, "{gc}"',
            "the option `jdk` never reaches the server",
            "use `{java}` in place of `java` in `command`, or remove the option",
        ),
        (
            "[17, 21]",
            "[17, lts, 21]",
            "`lts` is not a feature release of Java",
            "write whole numbers, such as 21, or `path`",
        ),
    ],
)
def test_an_entry_needs_both_or_neither(tmp_path: Path, old: str, new: str, message: str, hint: str) -> None:
    found = problems(tmp_path, SUITE, JVM.replace(old, new))
    if message:
        assert [(problem.message, problem.hint) for problem in found] == [(message, hint)]
    else:
        missing = [problem for problem in found if "of the option `jdk`, which is missing" in problem.message]
        assert len(missing) == 1
        assert "add it, such as `jdk: {values: [17, 21, 25], default: 21}`" in missing[0].hint


FLAGS = """\
runtime: jvm
build: {run: [make], inputs: [src/**], outputs: [out]}
options:
  jdk: {values: [17, 21, 25], default: 21}
  gc: {values: [G1, Z], default: G1}
servers:
  plain: {about: takes flags, start: {command: ["{java}", "-XX:+Use{gc}GC", -jar, x, "{port}"]}}
"""
COMPACT = '{jdk: [21, 25], flags: {none: "", compact: "-XX:+UseCompactObjectHeaders"}}'


def with_flags(said: str) -> str:
    return SUITE.replace("two.plain, two.virtual", "two.plain").replace("{jdk: [17, 21], gc: Parallel}", said)


def test_a_named_set_of_flags_is_a_value_of_an_axis(tmp_path: Path) -> None:
    suite = read(tmp_path, with_flags(COMPACT), FLAGS)
    assert slugs(suite) == [
        "two.plain",
        "two.plain+flags=compact",
        "two.plain+jdk=25",
        "two.plain+jdk=25+flags=compact",
        "fam.plain",
    ]
    assert [variant.flags.flags for variant in suite.variants if variant.flags] == [
        ("-XX:+UseCompactObjectHeaders",)
    ] * 2
    plan = make_plan(suite)
    assert [(skipped.slug, skipped.reason, skipped.cause) for skipped in plan.skipped] == [
        (
            "two.plain+flags=compact.Get.saturate",
            "-XX:+UseCompactObjectHeaders needs JDK 24 or later",
            "suite",
        )
    ]


def test_no_flags_leave_the_id_of_a_cell_as_it_was(tmp_path: Path) -> None:
    plain = make_plan(read(tmp_path, with_flags("{jdk: [21, 25]}"), FLAGS))
    several = make_plan(read(tmp_path, with_flags(COMPACT), FLAGS))
    assert plain.cells.keys() < several.cells.keys()


def test_flags_of_one_name_are_other_cells_when_they_change(tmp_path: Path) -> None:
    found = [
        make_plan(read(tmp_path, with_flags(f'{{flags: {{one: "{flag}"}}}}'), FLAGS)).cells.keys()
        for flag in ("-XX:+UseNUMA", "-XX:-UseNUMA")
    ]
    assert [key.rpartition("-")[0] for key in found[0]] == [key.rpartition("-")[0] for key in found[1]]
    assert set(found[0]) & set(found[1]) == {key for key in found[0] if key.startswith("fam.")}


def test_the_command_line_selects_flags_by_name(tmp_path: Path) -> None:
    catalogue = load_catalogue(write_catalogue(tmp_path / "catalogue", two=FLAGS))
    (tmp_path / "some.yaml").write_text(with_flags(COMPACT))
    suite = load_suite(tmp_path / "some.yaml", catalogue, Overrides(options=(("flags", "compact"), ("jdk", "25"))))
    assert slugs(suite) == ["two.plain+jdk=25+flags=compact", "fam.plain"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("{jdk: 17, gc: Z, flags: {x: -XX:+ZGenerational}}", "-XX:+ZGenerational needs JDK 21 or later"),
        ("{jdk: 21, gc: Z, flags: {x: -XX:+ZGenerational}}", ""),
        (
            "{jdk: 25, gc: Z, flags: {x: -XX:+ZGenerational}}",
            "-XX:+ZGenerational is for JDK 23 or earlier; later JDKs ignore it: there Z is always generational",
        ),
        (
            "{gc: G1, flags: {x: -XX:+ZGenerational}}",
            "-XX:+ZGenerational is for the collector Z; G1 ignores it",
        ),
        ("{gc: G1, flags: {x: [-XX:G1HeapRegionSize=2m, -XX:+UseNUMA]}}", ""),
        ("{jdk: /opt/jdk, flags: {x: -XX:+UseCompactObjectHeaders}}", ""),
    ],
)
def test_flags_that_cannot_take_effect_are_skipped(tmp_path: Path, said: str, reason: str) -> None:
    plan = make_plan(read(tmp_path, with_flags(said), FLAGS))
    assert [skipped.reason for skipped in plan.skipped] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("-XX:+UseNUMA", "named sets are for `flags`, and `flags` are named sets"),
        ("{}", "flags are named sets"),
        ("{a b: -XX:+UseNUMA}", "`a b` is not safe in a file name"),
        ("{x: 5}", "flags are a text, or a list of texts"),
        ("{x: -jar}", "`-jar` is not a JVM flag"),
        ("{x: -XX:+UseZGC}", "`-XX:+UseZGC` contradicts the option `gc`"),
        ("{x: -Xmx1g}", "`-Xmx1g` contradicts the option `heap`"),
        ("{x: -XX:+UseNUMA, y: [-XX:+UseNUMA]}", "these flags are given twice"),
    ],
)
def test_flags_that_are_wrong_are_refused(tmp_path: Path, said: str, message: str) -> None:
    (found,) = problems(tmp_path, with_flags(f"{{jdk: 21, flags: {said}}}"), FLAGS)
    assert found.message == message


def test_only_flags_have_names(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, with_flags('{gc: {x: "-XX:+UseNUMA"}}'), FLAGS)
    assert found.message == "named sets are for `flags`, and `flags` are named sets"
