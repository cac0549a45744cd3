"""`scripts/patiently` on hosts that take CPU time and on hosts that do not, by a fake awk, pytest and cargo."""

import os
import subprocess
from pathlib import Path

import pytest

PATIENTLY = Path(__file__).parents[3] / "scripts" / "patiently"


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def run(folder: Path, codes: list[int], *arguments: str, stolen: int) -> tuple[int, list[str], str]:
    """The exit code, the arguments of all calls, and standard error, of a command with these exit codes in turn.

    `stolen` of 100 ticks were stolen meanwhile.
    """
    calls, stat = folder / "calls", folder / "stat"
    script(folder / "awk", f"if [ -e {stat} ]; then echo {7 + stolen} 1100; else touch {stat}; echo 7 1000; fi")
    nth = f'$(sed -n "$(wc -l < {calls})p" {folder}/codes)'
    script(folder / "pytest", f'echo "$@" >> {calls}\nexit {nth}')
    (folder / "codes").write_text("".join(f"{code}\n" for code in codes))
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [PATIENTLY, folder / "pytest", "these", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, calls.read_text().splitlines(), done.stderr


def test_what_succeeds_is_run_once(tmp_path: Path) -> None:
    assert run(tmp_path, [0], stolen=50) == (0, ["these"], "")


@pytest.mark.parametrize("stolen", [0, 1])
def test_a_failure_of_one_test_at_a_time_on_a_quiet_host_is_final(tmp_path: Path, stolen: int) -> None:
    assert run(tmp_path, [1, 0], stolen=stolen) == (1, ["these"], "")


@pytest.mark.parametrize("later", [[0], [1, 0], [1, 1]])
@pytest.mark.parametrize(("arguments", "stolen"), [((), 30), (("-n", "3"), 0)])
def test_what_failed_runs_again_by_itself_at_most_twice(
    tmp_path: Path, arguments: tuple[str, ...], stolen: int, later: list[int]
) -> None:
    code, calls, message = run(tmp_path, [1, *later, 0], *arguments, stolen=stolen)
    first = " ".join(("these", *arguments))
    again = f"{first} -n 0 --last-failed --last-failed-no-failures=none -vv --junitxml="
    assert (code, calls) == (later[-1], [first, *[again] * len(later)])
    assert message.splitlines() == [
        f"patiently: the hypervisor took {stolen}% of the CPU time; the failed tests run again, one at a time "
        f"({number} of 3 times):"
        for number in range(2, 2 + len(later))
    ]


@pytest.mark.parametrize("code", [2, 5, 130])
def test_what_is_no_failed_test_is_not_run_again(tmp_path: Path, code: int) -> None:
    assert run(tmp_path, [code, 0], stolen=30)[:2] == (code, ["these"])


LIBTEST = """
running 3 tests
failures:

---- pools::are_bounded stdout ----
    left: 1
   0: core::panicking::panic_fmt

failures:
    pools::are_bounded
    crates/wire/src/lib.rs - parse (line 12)

test result: FAILED. 1 passed; 2 failed
"""


def run_cargo(folder: Path, outputs: list[tuple[str, int]], *, threads: str, stolen: int = 0) -> tuple[int, list[str]]:
    """The exit code and the arguments of all calls of a cargo with these outputs and exit codes in turn."""
    calls, stat = folder / "calls", folder / "stat"
    for number, (output, code) in enumerate(outputs, 1):
        script(folder / f"call{number}", f"cat <<'END'\n{output}\nEND\nexit {code}")
    script(folder / "awk", f"if [ -e {stat} ]; then echo {7 + stolen} 1100; else touch {stat}; echo 7 1000; fi")
    nth = f"{folder}/call$(wc -l < {calls})"
    script(folder / "cargo", f'(IFS="|"; echo "$*" >> {calls})\nexec {nth}')
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "RUST_TEST_THREADS": threads}
    command = [str(PATIENTLY), "cargo", "test", "--", "pools"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, calls.read_text().splitlines()


@pytest.mark.parametrize("second", [0, 101])
@pytest.mark.parametrize(("threads", "stolen"), [("4", 0), ("1", 30)])
def test_failed_tests_of_cargo_run_again_by_name(tmp_path: Path, threads: str, stolen: int, second: int) -> None:
    """The third time, those that failed the second time."""
    one_less = LIBTEST.replace("    pools::are_bounded\n", "") if second else "test result: ok. 3 passed"
    outputs = [(LIBTEST, 101), (one_less, second), ("", 0)]
    code, calls = run_cargo(tmp_path, outputs, threads=threads, stolen=stolen)
    doctest, again = "crates/wire/src/lib.rs - parse (line 12)", "test|--|pools|--exact|--test-threads=1"
    expected = ["test|--|pools", f"{again}|{doctest}|pools::are_bounded", f"{again}|{doctest}"]
    assert (code, calls) == (0, expected if second else expected[:2])


def test_a_failure_of_cargo_with_one_thread_on_a_quiet_host_is_final(tmp_path: Path) -> None:
    assert run_cargo(tmp_path, [(LIBTEST, 101), ("", 0)], threads="1") == (101, ["test|--|pools"])


@pytest.mark.parametrize(
    "output",
    [
        "error[E0425]: cannot find value `x` in this scope",
        f"{LIBTEST}\nCaused by:\n  process didn't exit successfully: `engine` (signal: 11, SIGSEGV)",
    ],
    ids=["does not compile", "ended by a signal"],
)
def test_what_is_no_failed_test_of_cargo_is_not_run_again(tmp_path: Path, output: str) -> None:
    assert run_cargo(tmp_path, [(output, 101), ("", 0)], threads="4") == (101, ["test|--|pools"])


def test_cargo_that_succeeds_is_run_once(tmp_path: Path) -> None:
    assert run_cargo(tmp_path, [("test result: ok. 3 passed", 0)], threads="4") == (0, ["test|--|pools"])
