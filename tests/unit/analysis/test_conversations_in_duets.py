"""Conversations of duets: what their servers' CPU time says of gaps, and what is said where too few are known."""

import pytest

from redline.analysis.duet import Duet
from redline.model import DuetBlock, DuetRecording, Histogram, Metric, StreamTraffic
from tests.fakes.duets import simulated_duet

GAPS = 4000


def talking(start: int, gaps: int = GAPS, gap_ns: int = 2_000_000, blurred: int = 0) -> DuetRecording:
    """A start of servers whose gaps B lengthens by 5%, and whose CPU time falls by half: nobody is warm."""
    made = simulated_duet(start)
    traffic = made.traffic
    assert traffic is not None

    def colder(block: DuetBlock) -> DuetBlock:
        share = 2 if block.index < len(traffic.blocks) // 2 else 1
        slices = [
            slice_.model_copy(
                update={"cpu_ns": tuple(share * (ns or 0) if at == 1 else ns for at, ns in enumerate(slice_.cpu_ns))}
            )
            for slice_ in block.slices
        ]
        return block.model_copy(update={"slices": tuple(slices)})

    def streams(at: int) -> StreamTraffic:
        times = Histogram.of([round(gap_ns * (1.05 if at == 1 else 1))] * gaps)
        return StreamTraffic(begun=gaps, first_event=Histogram(), gaps=times, counted=gaps, blurred=blurred)

    targets = [target.model_copy(update={"streams": streams(at)}) for at, target in enumerate(traffic.targets)]
    update = {"targets": tuple(targets), "blocks": tuple(map(colder, traffic.blocks))}
    return made.model_copy(update={"traffic": traffic.model_copy(update=update)})


def test_cpu_time_that_still_falls_leaves_gaps_known() -> None:
    duet = Duet(tuple(talking(start) for start in range(4)), detects=True)
    gap, cpu = duet.ratio(Metric.GAP_P50), duet.ratio(Metric.CPU_PER_REQUEST)
    assert gap is not None
    assert cpu is not None
    assert gap.bias < 0.02 < 0.1 < cpu.bias
    assert gap.value == pytest.approx(0.0488, abs=1e-3), "the logarithm of 5%"


@pytest.mark.parametrize(
    ("metric", "gaps", "said"),
    [
        (Metric.GAP_P99, 400, "a start had 400 of A, and gap p99 needs 1,000: give --for "),
        (Metric.GAP_P50, 0, "a start had 0 of A, and gap p50 needs 1"),
    ],
)
def test_too_few_gaps_say_how_many_and_which_time_gives_enough(metric: Metric, gaps: int, said: str) -> None:
    duet = Duet(tuple(talking(start, gaps) for start in range(3)))
    assert duet.ratio(metric) is None
    assert duet.why_unknown(metric).startswith(said)


def test_messages_that_were_read_late_leave_ratios_of_sure_times() -> None:
    duet = Duet(tuple(talking(start, blurred=GAPS // 30) for start in range(4)), detects=True)
    gap = duet.ratio(Metric.GAP_P50)
    assert gap is not None
    assert gap.value == pytest.approx(0.0488, abs=1e-3), "the logarithm of 5%"


def test_a_ratio_allows_for_what_messages_that_were_read_late_may_have_moved() -> None:
    """Gaps of 2 ms to 2.5 ms, evenly: 3.3% of the ranks around the median are 0.7% of it on either side."""

    def spread(start: int, blurred: int) -> DuetRecording:
        made = talking(start, blurred=blurred)
        assert made.traffic is not None
        times = Histogram.of([2_000_000 + 125 * at for at in range(GAPS)])
        streams = [target.streams for target in made.traffic.targets]
        targets = tuple(
            target.model_copy(update={"streams": own and own.model_copy(update={"gaps": times, "jitter": times})})
            for target, own in zip(made.traffic.targets, streams, strict=True)
        )
        return made.model_copy(update={"traffic": made.traffic.model_copy(update={"targets": targets})})

    sure, late = (Duet(tuple(spread(start, blurred) for start in range(4))) for blurred in (0, GAPS // 30))
    known, wider = sure.ratio(Metric.GAP_P50), late.ratio(Metric.GAP_P50)
    assert known is not None
    assert wider is not None
    assert wider.bias - known.bias == pytest.approx(2 * 0.0148, rel=0.1)
    assert sure.ratio(Metric.JITTER_P99) is not None
    hidden = late.ratio(Metric.JITTER_P99)
    assert hidden is not None
    assert (hidden.contrast.ratio.low, hidden.contrast.ratio.high) == (None, None), "it may be anything"
