"""The tables of claims are made from stored reports, and a verdict says no more than its interval."""

import math
import re

import pytest

from bench import claims

PUBLISHED = {
    "tapir": {*(f"T{number}" for number in range(1, 12)), "S1", "S2", "S3"},
    "petstore": {f"L{number}" for number in range(7)},
    "clojure": {f"C{number}" for number in range(1, 9)},
}


@pytest.mark.parametrize("study", sorted(PUBLISHED))
def test_a_page_of_claims_is_what_the_stored_reports_say(study: str) -> None:
    written = (claims.STUDIES / study / "claims.md").read_text(encoding="utf-8")
    assert written == claims.page(study), "python -m bench.claims writes it anew"
    runs = (claims.STUDIES / study / "runs.txt").read_text(encoding="utf-8")
    assert runs == claims.runs(study) != "", "python -m bench.claims writes it anew"
    assert f"({study}/claims.md)" in (claims.STUDIES / f"{study}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("study", sorted(PUBLISHED))
def test_no_published_claim_is_left_out(study: str) -> None:
    assert {each["id"] for each in claims.claims(study)} == PUBLISHED[study]
    assert len(claims.claims(study)) == len(re.findall(r"(?m)^\| [TLSC]\d", claims.page(study)))


def test_every_study_with_claims_is_known() -> None:
    assert claims.studies() == sorted(PUBLISHED)


def test_what_was_contradicted_is_said() -> None:
    page = claims.page("tapir")
    for claim in ("cats faster than Future", "the log barely seen"):
        (row,) = [line for line in page.splitlines() if claim in line]
        assert "**differs**" in row


@pytest.mark.parametrize(
    ("text", "shown", "low", "high"),
    [
        ("\u22125.6% [\u22129.7, \u22121.2] ?", "\u22125.6% ? [\u22129.7, \u22121.2]", 0.903, 0.988),
        ("+33% ? [\u22128.9, +1,093.8]", "+33% ? [\u22128.9, +1,093.8]", 0.911, 11.938),
        ("\u221228.5% ?; [\u221234.8, \u221221.6]", "\u221228.5% ? [\u221234.8, \u221221.6]", 0.652, 0.784),
        ("+3.1% △ [+1.2, +5.0]", "+3.1% [+1.2, +5.0]", 1.012, 1.05),
        ("\u22123.1% ▽; [\u22125.0, \u22121.2]", "\u22123.1% [\u22125.0, \u22121.2]", 0.95, 0.988),
        ("50.0 k/s ±25%; 0.512 (0.355\u20130.738); ▼ slower", "50.0 k/s ±25%", 40_000, 62_500),
        ("4.00 ms 2\u20138", "4.00 ms (2\u20138)", 0.002, 0.008),
    ],
)
def test_a_stored_figure_is_read_with_its_interval(text: str, shown: str, low: float, high: float) -> None:
    figure = claims.parsed(text)
    assert figure.text == shown
    assert figure.low == pytest.approx(low)
    assert figure.high == pytest.approx(high)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2.2% ±0.4 6.5% ±0.6 with what it calls", "6.5% ±0.6"),
        ("2.2% ±0.4", "2.2% ±0.4"),
        ("4.6% ±0.5; 8.7% with what it calls", "8.7%"),
    ],
)
def test_a_share_of_one_profile_says_nothing_of_other_starts(text: str, shown: str) -> None:
    share = claims.parsed(text)
    assert share.text == shown
    assert claims.verdict(share, 0.13) == "not known: one trial has no interval"


REPORT = """### Comparisons

The **change against the baseline**.

**throughput against a.b** users1 closed

| server | GET |
|---|---:|
| **a.c**<br>rank 1 | \u221262.7% ? \\[\u221278.6, \u221235.1\\] |

### Repeat this run

redline 0.1.0 · run s.yaml -s 'a.\\*'
"""


def test_a_report_is_stored_by_its_tables_cells_and_paragraphs() -> None:
    assert [tuple(row.values())[1:] for row in claims.reported("x", REPORT)] == [
        ("Comparisons", "", "", "The change against the baseline."),
        ("Comparisons", "", "", "throughput against a.b users1 closed"),
        ("Comparisons / throughput against a.b", "a.c rank 1", "GET", "\u221262.7% ? [\u221278.6, \u221235.1]"),
        ("Repeat this run", "", "", "redline 0.1.0 · run s.yaml -s 'a.*'"),
    ]


def test_a_change_that_its_report_calls_inconclusive_contradicts_no_claim_that_nothing_changed() -> None:
    for text in ("+68.7% ? [+14.8, +147.9] (p 0.084 among 3)", "+68.7% [+14.8, +147.9] ?"):
        figure = claims.parsed(text)
        assert claims.verdict(figure, 1) == "not known"
        assert claims.verdict(figure, "< 1") == "not known"
        assert claims.verdict(figure, 4).startswith("**differs**")
    assert claims.verdict(claims.parsed("+68.7% ▲ [+14.8, +147.9]"), 1).startswith("**differs**")


def test_a_page_says_what_its_question_marks_mean() -> None:
    page = claims.page("tapir")
    assert "+68.7% ? [+14.8, +147.9]" in page
    assert "?: inconclusive in its run" in " ".join(page.split())


def test_a_figure_in_doubt_has_no_verdict_but_the_doubt() -> None:
    figure = claims.Measured("", 0.4, 0.5)
    assert claims.verdict(figure, 0.8, doubt="two of three starts were not warm") == (
        "not known: two of three starts were not warm"
    )


def still_compiling(study: str, run: str) -> list[str]:
    """The cells of a stored run of which its report warns that they were not compiled yet."""
    texts = [row["text"] for row in claims.rows(study) if row["report"] == run and not row["column"]]
    at = [number for number, text in enumerate(texts) if re.match("(- )?! warn still-compiling", text)]
    return [cell for number in at for cell in texts[number + 2].removeprefix("in ").split(", ")]


@pytest.mark.parametrize("study", sorted(PUBLISHED))
def test_a_verdict_on_cells_that_were_still_compiling_says_so(study: str) -> None:
    for claim in claims.claims(study):
        if "measured" not in claim or {"doubt", "note"} & claim.keys():
            continue
        reference = claim["measured"]
        if claims.verdict(claims.measured(reference, study), claim["expected"]).startswith("not known"):
            continue
        for each in reference.values() if isinstance(reference, dict) else [reference]:
            run, *words = re.split(" [|] | ", each)
            cells = still_compiling(study, run)
            assert cells != ["every cell"], claim["claim"]
            assert not [cell for cell in cells if {*cell.rsplit(".", 2)} <= {*words}], claim["claim"]


@pytest.mark.parametrize("study", sorted(PUBLISHED))
def test_no_verdict_rests_on_a_ratio_of_two_runs(study: str) -> None:
    for claim in claims.claims(study):
        if isinstance(reference := claim.get("measured"), dict):
            assert len({reference[part].split(" | ")[0] for part in ("of", "to")}) == 1, claim["claim"]


@pytest.mark.parametrize("study", sorted(PUBLISHED))
def test_a_run_names_its_suite_or_says_that_it_was_not_kept(study: str) -> None:
    for line in (claims.STUDIES / study / "runs.txt").read_text(encoding="utf-8").splitlines():
        kept = all((claims.ROOT / suite).is_file() for suite in re.findall(r"[\w/.-]+\.yaml", line))
        assert line.endswith(" (this suite was not kept)") != kept, line


def test_a_text_that_is_no_figure_is_refused() -> None:
    for text in ("refused: 1,012 requests are too few for p99.9", "✕ invalid", "353 ms not known"):
        with pytest.raises(ValueError, match="not a figure"):
            claims.parsed(text)


@pytest.mark.parametrize(
    ("low", "high", "expected", "says"),
    [
        (0.75, 0.85, 0.8, "**agrees**"),
        (0.70, 0.85, 0.8, "not known"),
        (0.40, 0.50, 0.8, "**differs**"),
        (1.01, 1.20, "> 1", "**agrees**"),
        (0.99, 1.20, "> 1", "not known"),
        (0.80, 0.99, "> 1", "**differs**"),
        (0.80, 0.99, "< 1", "**agrees**"),
        (1.01, 1.20, "< 1", "**differs**"),
        (0.10, math.inf, 0.8, "not known"),
    ],
)
def test_a_claim_agrees_only_if_the_interval_lies_within_it(
    low: float, high: float, expected: float | str, says: str
) -> None:
    assert claims.verdict(claims.Measured("", low, high), expected) == says


def test_a_figure_without_an_interval_decides_nothing() -> None:
    figure = claims.parsed("93.0 MiB")
    assert claims.verdict(figure, "> 1") == "not known: one trial has no interval"
    server = "clojure.aleph+gc=Shenandoah+heap=512m+tuning=stream+flags=every-20s"
    live_set = f"soak-settings | Memory and pauses: MathPlus \u00b7 soak | {server} | live set"
    with pytest.raises(ValueError, match="needs two intervals"):
        claims.measured(dict.fromkeys(("of", "to"), live_set), "clojure")


def test_a_pattern_finds_a_figure_in_a_paragraph() -> None:
    figure = claims.measured(r"timestamp | ^http4s.tapir\+routes=1: .*from server: p50 ([^,]+)", "tapir")
    assert figure == claims.Measured("109 µs", None, None)
    with pytest.raises(ValueError, match="names 0 stored figures"):
        claims.measured("timestamp | no such (words)", "tapir")


def test_a_reference_names_one_stored_figure_or_is_refused() -> None:
    with pytest.raises(ValueError, match="names 0 stored figures"):
        claims.measured("routes | no such section | pekko.tapir | SimpleGet", "tapir")


def test_a_ratio_is_as_wide_as_both_intervals() -> None:
    pair = {
        "of": "overhead | SimpleGet · users128 | vertx.tapir-cats | throughput",
        "to": "overhead | SimpleGet · users128 | vertx.tapir-future | throughput",
    }
    figure = claims.measured(pair, "tapir")
    assert figure.low == pytest.approx(51.9 / 1.13 / (74.4 * 1.035))
    assert figure.high == pytest.approx(51.9 * 1.13 / (74.4 / 1.035))
