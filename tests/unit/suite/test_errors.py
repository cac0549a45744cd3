"""All mistakes in a suite are reported together, with line, column, field and a hint."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.suite import load_suite
from tests.fakes.catalogues import SUITE, problems_of, small_catalogue

MANY = """\
abuot: x
servers: [fam.plian, {use: fam.layered, wiht: {routes: 1}}, 7]
baseline: fam.plain
scenarios:
  - Gte
  - {name: Mine, get: path, expect: {status: 99, bdy: x}}
loads:
  a: {closed: {users: -1}, for: 1}
  b: {open: {rate: 0, arrivals: poison}, for: 5 parsecs}
warmup: on
trials: true
threshold: 200%
"""


def test_every_problem_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, MANY)
    places = [(p.place.line, p.place.column, p.place.field) for p in problems if p.place]
    assert places == [
        (1, 1, "abuot"),
        (2, 11, "servers[0]"),
        (2, 41, "servers[1].wiht"),
        (2, 61, "servers[2]"),
        (5, 5, "scenarios[0]"),
        (6, 23, "scenarios[1].get"),
        (6, 46, "scenarios[1].expect.status"),
        (6, 50, "scenarios[1].expect.bdy"),
        (8, 23, "loads.a.closed.users"),
        (8, 33, "loads.a.for"),
        (9, 20, "loads.b.open.rate"),
        (9, 33, "loads.b.open.arrivals"),
        (9, 47, "loads.b.for"),
        (10, 9, "warmup"),
        (11, 9, "trials"),
        (12, 12, "threshold"),
    ]
    assert all(problem.hint for problem in problems)
    assert {problem.place.file for problem in problems if problem.place} == {str(tmp_path / "some.yaml")}


def changed(old: str, new: str) -> str:
    assert old in SUITE
    return SUITE.replace(old, new)


SERVERS = "[fam.plain, fam.layered]"
LOAD = "{closed: {users: 64}, for: 1s}"


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("[1, 2]", "must be a mapping of keys, not a list", "docs/reference/suite.md"),
        ("just a word", "must be a mapping of keys, not `just a word`", "docs/reference/suite.md"),
        ("about: x", "`servers` is missing", "add it, such as `servers: [rust.hyper]`"),
        (SUITE + "xyzzy: {}\n", "unknown key `xyzzy`", "known here: about, servers"),
        (SUITE + "abuot: x\n", "unknown key `abuot`", "did you mean `about`?"),
        (SUITE + "seed: 1\nseed: 2\n", "is given twice, first in line 5", "remove one"),
        (changed(SERVERS, "fam.plain"), "must be a list, not `fam.plain`", "such as `[rust.hyper]`"),
        (changed(SERVERS, "[]"), "must have at least 1", "catalogue servers"),
        (changed(SERVERS, "[fam.plain, fam.plain]"), "`fam.plain` is given twice", "remove one"),
        (changed(SERVERS, "[fam.plian]"), "no server `fam.plian`", "did you mean `fam.plain`?"),
        (changed(SERVERS, "[{use: nothing}]"), "no server `nothing`", "the catalogue has: fam.plain"),
        (changed(SERVERS, "[{with: {}}]"), "none of use, command", "`use: rust.hyper`"),
        (changed(SERVERS, "[{use: fam.plain, with: {rotes: 1}}]"), "no option `rotes`", "did you mean `routes`?"),
        (changed(SERVERS, "[{use: fam.plain, with: {zzz: 1}}]"), "no option `zzz`", "it has: routes"),
        (changed(SERVERS, "[{use: top.null, with: {routes: 1}}]"), "no option `routes`", "remove `with`"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: 12}}]"), "`12` is not a value", "did you mean `128`?"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: true}}]"), "`true` is not a value", "takes: 1, 128"),
        (changed(SERVERS, '[{use: fam.plain, with: {routes: "1"}}]'), "`1` is not a value", "without quotes"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: [1, 1]}}]"), "`1` is given twice", "remove one"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: []}}]"), "at least one value", "take its default"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: {a: 1}}}]"), "a text, a whole number", "such a value"),
        (changed(SERVERS, "[{use: fam.plain, with: {routes: 1.5}}]"), "a text, a whole number", "such a value"),
        (changed("[Get]", "[Gett]"), "no scenario `Gett`", "did you mean `Get`?"),
        (changed("[Get]", "[Get, Get]"), "the scenario `Get` is given twice", "remove one"),
        (changed("[Get]", "[{name: Get, get: /x}]"), "has a scenario `Get` already", "another name"),
        (changed("[Get]", "[{name: a b, get: /x}]"), "`a b` does not have", "a letter, then letters"),
        (changed("[Get]", "[{name: M}]"), "has no method", "exactly one of get, head"),
        (changed("[Get]", "[{name: M, get: /x, post: /x}]"), "has get and post", "exactly one of get, head"),
        (changed("[Get]", "[{name: M, get: x}]"), "`x` is not a path", "write `/x`"),
        (changed("[Get]", "[{name: M, get: /ä}]"), "visible ASCII", "percent-encode"),
        (changed("[Get]", "[{name: M, get: /x, requires: {rout: 1}}]"), "option `rout`", "did you mean `routes`?"),
        (changed("[Get]", "[{name: M, get: /x, requires: {routes: [1]}}]"), "a text, a whole", "such a value"),
        (changed("[Get]", "[{name: M, get: /x, headers: {a b: c}}]"), "`a b` is not a header name", "RFC 9110"),
        (changed("[Get]", '[{name: M, get: /x, headers: {A: "b\\r\\nC: d"}}]'), "one line of ASCII", "control"),
        (changed("[Get]", "[{name: M, get: /x, headers: {A: 1}}]"), "must be text, not `1`", 'make it text: "1"'),
        (changed("[Get]", "[{name: M, get: /x, headers: {Content-Length: '1'}}]"), "the engine sets", "remove it"),
        (changed("[Get]", "[{name: M, post: /x, body: {size: 5mb}}]"), "unknown unit `mb`", "did you mean `5MB`?"),
        (changed("[Get]", "[{name: M, post: /x, body: {size: 65MiB}}]"), "at most 64 MiB", "send less"),
        (changed("[Get]", "[{name: M, post: /x, body: 5}]"), "must be text, not `5`", "quote it"),
        (changed("[Get]", "[{name: M, get: /, expect: {body: ab, length: 3}}]"), "has 2 bytes", "remove `length`"),
        (changed("[Get]", "[{name: M, get: /, expect: {under_load: hash}}]"), "needs the `body`", "whole body"),
        (
            changed("[Get]", "[{name: M, get: /, expect: {under_load: length}}]"),
            "needs `body` or",
            "write `body` or `length`",
        ),
        (changed("[Get]", "[{name: M, get: /, expect: {under_load: hsah}}]"), "not `hsah`", "did you mean `hash`?"),
        (changed(LOAD, "{for: 1s}"), "neither closed nor open", "write `closed: {users: 64}`"),
        (changed(LOAD, "{closed: {users: 1}, open: {rate: 1}, for: 1s}"), "both closed and open", "write `closed"),
        (changed(LOAD, "{closed: {users: 1}}"), "`for` is missing", "`for: 1s`"),
        (changed(LOAD, "{closed: {users: 0}, for: 1s}"), "a load without users sends nothing", "or a stage to more"),
        (changed(LOAD, "{closed: {users: 1000001}, for: 1s}"), "at most 1000000", "1 to 1000000"),
        (changed(LOAD, "{closed: {users: 1.5}, for: 1s}"), "a whole number", "1 to 1000000"),
        (changed(LOAD, "{closed: {}, for: 1s}"), "`users` is missing", "`users: 64`"),
        (changed(LOAD, "{closed: {users: 1}, for: 0s}"), "at least 1ms", "measures nothing"),
        (changed(LOAD, "{closed: {users: 1}, for: 25}"), "`25` has no unit", "`25s`"),
        (changed(LOAD, "{closed: {users: 1}, for: }"), "`for` is missing", "`for: 1s`"),
        (changed(LOAD, "{closed: {users: 1}, for: 5 sec}"), "unknown unit `sec`", "did you mean `s`?"),
        (changed(LOAD, "{open: {rate: 0}, for: 1s}"), "a rate of 0", "5000/s"),
        (changed(LOAD, "{open: {rate: -5}, for: 1s}"), "`-5` is not a rate", "5000/s"),
        (changed(LOAD, "{open: {rate: .inf}, for: 1s}"), "`inf` is not a rate", "5000/s"),
        (changed(LOAD, "{open: {rate: on}, for: 1s}"), "`on` is not a rate", "5000/s"),
        (changed(LOAD, "{open: {rate: 1, connections: 0}, for: 1s}"), "at least 1", "1 to 1000000"),
        (changed("saturate:", "two words:"), "`two words` does not have", "a letter, then letters"),
        (SUITE + "baseline: slow.vanilla\n", "is not among the servers of this suite", "add it to `servers`"),
        (SUITE + "baseline: fam.plan\n", "no server `fam.plan` in this suite", "did you mean `fam.plain`?"),
        (SUITE + "ceiling: {use: fam.plain, with: {routes: [1, 128]}}\n", "not an axis", "one value"),
        (SUITE + "trials: 0\n", "at least 1, not `0`", "fresh server"),
        (SUITE + "trials: 100000\n", "at most 1000", "fresh server"),
        (SUITE + "seed: -1\n", "at least 0", "order of trials"),
        (SUITE + "timeout: 0s\n", "at least 1ns", "no answer is in time"),
        (SUITE + "timeout: 2h\n", "at most 1h", "histograms"),
        (SUITE + "engine: {backend: kqueue}\n", "`kqueue`", "epoll"),
        (SUITE + "engine: {spin: 1}\n", "must be true or false", "poll"),
        (SUITE + "threshold: 0%\n", "more than 0%", "2%"),
        (SUITE + "threshold: 1\n", "less than 100%", "2%"),
        (SUITE + "objective: p98 < 1s\n", "`p98` is not a metric", "did you mean `p99`?"),
        (SUITE + "objective: []\n", "is text, or a list of texts", "p99 < 200ms"),
        (SUITE + "objective: [1]\n", "is text, or a list of texts", "p99 < 200ms"),
    ],
)
def test_a_single_mistake_gives_a_single_problem(tmp_path: Path, text: str, says: str, hint: str) -> None:
    problems = problems_of(tmp_path, text)
    first = problems[0]
    assert says in first.message
    assert hint in first.hint
    assert first.place is not None
    assert first.place.line is not None
    if "`servers` is missing" not in first.message:
        assert len(problems) == 1


def test_a_baseline_with_several_variants_has_to_be_named_exactly(tmp_path: Path) -> None:
    servers = "[{use: fam.layered, with: {routes: 1, log: [off, server-log]}}]"
    (problem,) = problems_of(tmp_path, changed(SERVERS, servers) + "baseline: fam.layered\n")
    assert problem.hint.startswith("choose one of: fam.layered+routes=1, fam.layered+log=server-log+routes=1; or say")


def test_too_many_trials_in_all(tmp_path: Path) -> None:
    loads = "".join(f"  l{n}: {{closed: {{users: {n}}}, for: 1s}}\n" for n in range(1, 102))
    (problem,) = problems_of(tmp_path, SUITE + loads + "trials: 1000\n")
    assert "204000 trials; at most 100000" in problem.message


def error_of(path: Path, tmp_path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_suite(path, small_catalogue(tmp_path))
    return str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").write_text(SUITE, encoding="utf-8")
    said = error_of(tmp_path / "quickstat.yaml", tmp_path)
    assert f"there is no file {tmp_path / 'quickstat.yaml'}" in said
    assert "did you mean `quickstart.yaml`?" in said
    assert "has: quickstart.yaml" in error_of(tmp_path / "zzz", tmp_path)
    assert "check the path" in error_of(tmp_path / "nowhere" / "x.yaml", tmp_path)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SUITE, encoding="utf-8")
    said = error_of(tmp_path, tmp_path)
    assert "is a folder" in said
    assert "name one of its files: a.yaml" in said


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"about: x\nservers: caf\xe9\n")
    assert error_of(path, tmp_path).startswith(f"{path}:2:13: this is not UTF-8 text")


def test_a_file_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_bytes(b"#" * (256 * 1024 + 1))
    assert "longer than 256 KiB" in error_of(path, tmp_path)


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    assert "cannot be read" in error_of(Path("a\0b"), tmp_path)
    assert "cannot be read" in error_of(tmp_path / ("x" * 5000), tmp_path)
