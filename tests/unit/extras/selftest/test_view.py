"""The output of `redline selftest`: the whole result, within the terminal's width."""

import io

import pytest
from rich.console import Console

from redline.cli.show import show
from redline.document.blocks import Section
from redline.extras.selftest.results import (
    CaseResult,
    Check,
    MachineFacts,
    Noise,
    PeerAnswer,
    Point,
    Quantile,
    SelftestResult,
)
from redline.extras.selftest.view import selftest_sections

TIMES = (Quantile(q=0.5, ns=21_000), Quantile(q=1, ns=90_000))


def shown(*sections: Section, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show(sections, console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def selftested() -> SelftestResult:
    noise = Noise(
        stolen_share=0.012,
        pressure_share=None,
        engine_waited_share=0.0,
        server_waited_share=None,
        engine_late=(Quantile(q=0.99, ns=4_000),),
        server_late=(),
    )
    point = Point(
        q=0.99,
        truth_ns=2e6,
        low_ns=1.9e6,
        high_ns=2.1e6,
        allowance_ns=5e4,
        answer_ns=2.4e6,
        error_ns=4e5,
        goal_ns=1e5,
        judgement="off",
        reason="the answer lies past chance and goal",
    )
    case = CaseResult(
        name="stall",
        about="a server that stops for 100 ms",
        load="open, 1000/s",
        measured_ns=10**10,
        requests=10_000,
        points=(point,),
        checks=(
            Check(name="wrong answers", value=0, limit=0, unit="requests", judgement="ok"),
            Check(name="lateness", value=3e6, limit=1e6, unit="ns", judgement="too noisy to say", reason="steal"),
        ),
        noise=noise,
        peers=(
            PeerAnswer(
                peer="wrk", version="4.2", tried_with="4.2", loop="closed", points=(), note="it corrects nothing"
            ),
        ),
    )
    return SelftestResult(
        judgement="off",
        machine=MachineFacts(
            cpu_model="a CPU", cores=2, kernel="6.1", engine="redline-engine", server_cpus=(0,), engine_cpus=(1,)
        ),
        round_trip=TIMES,
        round_trip_drift_ns=300,
        resting_round_trip=TIMES,
        resting_round_trip_drift_ns=1_000,
        sleeper=TIMES[:1],
        cases=(case,),
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_selftest_fits_the_terminal(width: int) -> None:
    assert max(map(len, shown(*selftest_sections(selftested()), width=width))) <= width


def test_a_selftest_has_truth_answer_error_and_judgement_of_each_case() -> None:
    lines = shown(*selftest_sections(selftested()))
    for expected in (
        "a CPU, 2 cores, Linux 6.1; engine redline-engine",
        "round trip  21.0 µs  90.0 µs",
        "stall  a server that stops for 100 ms",
        "p99  2.00 ms  2.40 ms  +400 µs  -100 µs +150 µs  ±100 µs  off",
        "lateness: 3.00 ms, at most 1.00 ms  too noisy to say",
        "  p99: the answer lies past chance and goal",
        "  lateness: steal",
        "wrk 4.2 (closed)        —",
        "  wrk: it corrects nothing",
        "off: 1 ok, 1 off, 1 too noisy to say",
    ):
        assert expected in lines
    assert not any(line.startswith("wrong answers") for line in lines)
