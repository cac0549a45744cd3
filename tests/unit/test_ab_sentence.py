"""The sentence with which `redline ab` ends."""

from typing import Any

import pytest

from redline.model import Metric, Verdict
from redline.model.duet import AbMetric, AbReport, Ratio
from redline.report.render import markdown
from redline.report.sections.ab import ab_sections, sentence

MORE_CPU, LESS_RATE = Ratio(value=1.031, low=1.024, high=1.039), Ratio(value=0.971, low=0.959, high=0.984)
NOTHING, UNKNOWN = Ratio(value=1.001, low=0.995, high=1.007), Ratio(value=1.01, low=None, high=None)
SLOWER, FASTER, ALIKE, OPEN = Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE


def report(
    ratio: Ratio, verdict: Verdict, rate: tuple[Ratio, Verdict] | None = (LESS_RATE, SLOWER), **given: Any
) -> AbReport:
    also = (AbMetric(metric=Metric.THROUGHPUT, ratio=rate[0], verdict=rate[1]),) if rate else ()
    made = AbReport(
        a="./old", b="./new", metric=Metric.CPU_PER_REQUEST, ratio=ratio, verdict=verdict, self_ratio=NOTHING,
        starts=14, seconds=59.2, also=also, findings=(),
    )  # fmt: skip
    return made.model_copy(update=given)


CONTROL = "0.1% [-0.5, 0.7]"
END = f"; A against itself: {CONTROL}; 59.2 s, 14 starts"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            report(MORE_CPU, SLOWER),
            "B takes 3.1% more CPU per request than A (95% interval 2.4 to 3.9%), its rate is 2.9% lower [1.6, 4.1]",
        ),
        (
            report(LESS_RATE, FASTER, (MORE_CPU, FASTER)),
            "B takes 2.9% less CPU per request than A (95% interval 1.6 to 4.1%), its rate is 3.1% higher [2.4, 3.9]",
        ),
        (
            report(MORE_CPU, SLOWER, (NOTHING, OPEN)),
            "B takes 3.1% more CPU per request than A (95% interval 2.4 to 3.9%), their rates cannot be distinguished: "
            + CONTROL,
        ),
        (
            report(NOTHING, ALIKE),
            "A and B are alike in CPU per request: 0.1% [-0.5, 0.7], B's rate is 2.9% lower [1.6, 4.1]",
        ),
        (
            report(UNKNOWN, OPEN, (NOTHING, ALIKE)),
            "A and B cannot be distinguished in CPU per request: 1.0% (interval not known), their rates are alike: "
            + CONTROL,
        ),
        (
            report(MORE_CPU, SLOWER, rate=None),
            "B takes 3.1% more CPU per request than A (95% interval 2.4 to 3.9%)",
        ),
        (
            report(MORE_CPU, SLOWER, metric=Metric.P99),
            "B's p99 is 3.1% higher than A's (95% interval 2.4 to 3.9%)",
        ),
        (
            report(LESS_RATE, SLOWER, rate=None, metric=Metric.THROUGHPUT),
            "B's throughput is 2.9% lower than A's (95% interval 1.6 to 4.1%)",
        ),
    ],
)
def test_the_sentence_says_what_was_found(made: AbReport, says: str) -> None:
    assert sentence(made).replace("\u2212", "-") == says + END


def test_an_interrupt_is_reported_last() -> None:
    assert sentence(report(MORE_CPU, SLOWER, interrupted=True)).endswith("14 starts; interrupted")


def test_markdown_says_what_was_compared() -> None:
    text = markdown.render(ab_sections(report(MORE_CPU, SLOWER))).decode()
    assert "A: ./old" in text
    assert "B: ./new" in text
    assert text.splitlines()[-1].startswith("**B takes 3.1% more CPU per request than A")


@pytest.mark.parametrize(
    ("low", "high", "beyond"),
    [(1.021, 1.04, True), (1.01, 1.04, False), (0.9, 0.97, True), (0.95, 0.985, False), (None, None, False)],
)
def test_a_ratio_is_beyond_a_threshold_if_all_of_its_interval_is(
    low: float | None, high: float | None, *, beyond: bool
) -> None:
    assert Ratio(value=1.0, low=low, high=high).is_beyond(0.02) is beyond
