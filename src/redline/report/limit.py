"""A limit as sections and in words: the same in the terminal, in Markdown and on the page."""

from collections.abc import Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import (
    Block,
    Column,
    Facts,
    Figures,
    Fold,
    Head,
    Item,
    Items,
    Line,
    Medium,
    Prose,
    Section,
    Span,
    Strip,
    Table,
    TableCell,
    TextCell,
    filled,
    key,
    line,
    words,
)
from redline.document.figures import Legend, Plot, Plots
from redline.document.outline import Chapter, Outline
from redline.document.scales import Scale, rate_scale
from redline.model import Finding, FindingKind, Grade
from redline.model.limits import Beyond, CellLimit, LimitAnswer, LimitReport, LimitStart
from redline.quantities import duration, percent, rate, significant, users
from redline.report.answer import limit_answer
from redline.report.by_request import searched_tables
from redline.report.doubt import flags_next, limit_caveats
from redline.report.limit_plots import band_colour, known_percentiles, payload
from redline.report.limit_probes import failures_lines, probes_table, rate_text
from redline.report.limit_ratios import ratio_section
from redline.report.parts import hosts_section, page_facts, repeat_section, skipped_section
from redline.report.probe_times import probe_items, probes_view

_Found = tuple[CellLimit, Finding]
_COLOURS = {"p50": 2, "p90": 0, "p99": 1, "p99.9": 3}
"""The percentiles as the page's script has them."""
_UNFOLDED = 3
"""The most cells that the page shows unfolded."""


def _head(report: LimitReport) -> Head:
    probes = fmt.count(sum(len(cell.probes) for cell in report.cells), "probe")
    goal = f"goal ±{percent(report.precision)}"
    return Head(
        report.suite,
        (*page_facts(report.environment, report.started_unix_ns, probes, report.seed), goal),
        brand="Redline, the breaking point",
        about=report.about,
        footer="Response time runs from when a request was due. All probes of one start of a server are of one trial; "
        "another start may have another limit.",
    )


def _figures(report: LimitReport) -> Figures:
    scale = _scale(report)
    scales = (scale,) if scale else ()
    if not any(cell.loads for cell in report.cells):
        return Figures(("limit.js",), lambda: {**payload(report.cells)}, scales)

    def data() -> dict[str, object]:
        return {**payload(report.cells), "times": {"probes": probe_items(report)}}

    return Figures(("limit.js", "time.js"), data, scales, ("time.css",))


def _scale(report: LimitReport) -> Scale | None:
    """The scale of all answers and knees; None if none is known, or some are rates and others users."""
    kinds = {cell.by_users for cell in report.cells if cell.probes}
    if len(kinds) > 1:
        return None
    rates = [cell.knee.rate_per_s for cell in report.cells if cell.knee]
    for answer in (answer for cell in report.cells for answer in cell.limits):
        rates += [end for end in (answer.passed, answer.failed) if end is not None]
    return rate_scale(rates, "rates", users if kinds == {True} else rate)


def _probes(report: LimitReport) -> Iterator[Section]:
    """The probes of servers by ascending rate, for a terminal: the page folds them below its curves."""
    for cell in report.cells:
        target = Prose.of([cell.target], "dim")
        name = cell.slug if len(report.cells) > 1 else ""
        yield Section(name, tuple(filled(target, probes_table(cell.probes, brief=True))))


def _answers(report: LimitReport) -> Iterator[Section]:
    """The answers as a table, and on the page as a picture."""
    intro = key(
        "From the highest rate that met the objectives to the lowest that missed them: **the limit is in between**. "
        "A ring marks the knee, from where on a higher rate costs more response time than it gives throughput."
    )
    if any(cell.by_users for cell in report.cells):
        intro = key("From the most users with whom objectives were met to the fewest with whom they were missed.")
    none = Prose.of([] if report.cells else ["Nothing was searched."], "dim")
    blocks = (Prose((intro,), on=Medium.PAGE), none, _answers_table(report, _scale(report)))
    yield Section("Limits", tuple(filled(*blocks)), anchor="limits")


def _around(report: LimitReport) -> Iterator[Section]:
    """Facts around the limits, in text: the page has them beside the curves."""
    blocks: list[Block] = []
    for cell in report.cells:
        lines = tuple(_fact_line(name, text) for name, text in facts_of(cell))
        blocks += [Prose((line((cell.slug, "strong"), f", {_about(cell)}"),)), Prose(lines, listed=True)]
    yield Section("Around the limit", tuple(filled(*blocks)))


def _fact_line(name: str, text: str) -> Line:
    return line((f"{name}: ", "dim"), (text, Grade.WARN if name == "client" else ""))


def _repeat(report: LimitReport) -> Iterator[Section]:
    facts = {"seed": str(report.seed)}
    yield repeat_section("search", report.command, facts, report.environment, report.suite_text)


def _about(cell: CellLimit) -> str:
    """The subject and the method: `./old --port {port}, items, open, poisson, 256 connections, 5 s after 1 s`."""
    return ", ".join(filter(None, (cell.target, cell.scenario, cell.load)))


def _curves(report: LimitReport) -> Iterator[Section]:
    """For the page: the facts of the cells, their curves and overload tests, and their probes."""
    intro = key(
        "A point shows what the probes of its rate saw together; a percentile that fewer than ten responses lie beyond "
        "is not shown. Crosses are rates that the server **did not keep up with**: their times grow for as long as the "
        "load lasts. Shaded are the answers. An overload test offers a rate that the server keeps up with, then more "
        "than its capacity, then the first rate again."
    )
    if any(cell.by_users for cell in report.cells):
        intro = key("A point shows what the probes with its number of users saw together. Shaded are the answers.")
    folds = (
        Fold(
            line((cell.slug, "strong"), (f" · {_about(cell)}", "dim")),
            tuple(_cell_blocks(cell, place)),
            place == 0 if len(report.cells) > _UNFOLDED else None,
            f"cell-{place}",
        )
        for place, cell in enumerate(report.cells)
    )
    blocks: list[Block] = [*folds]
    blocks.insert(len(blocks) if len(report.cells) == 1 else 0, Prose((intro,)))
    yield Section("Curves and overload tests", tuple(blocks), anchor="curves")


def _cell_blocks(cell: CellLimit, place: int) -> Iterator[Block]:
    if percentiles := known_percentiles(cell):
        yield Plots(place, tuple(_plots(cell)), tuple(_legend(cell, percentiles)))
    if facts := tuple(facts_of(cell)):
        yield Facts(facts, brief=False)
    yield from probes_view(cell, place)
    if cell.probes:
        name = line(fmt.count(len(cell.probes), "probe"))
        yield Fold(name, (probes_table(cell.probes),), open=False)


def _plots(cell: CellLimit) -> Iterator[Plot]:
    against, long = ("users",) * 2 if cell.by_users else ("answered rate", "answered requests per second")
    yield Plot(
        "curve",
        f"Response time against {against}",
        f"Response time against {long} of {cell.slug}: p50, p90, p99 and p99.9; "
        "every number stands in the table of probes",
    )
    if cell.beyond:
        overload = f"{cell.slug}: before, during and after an overload of {rate(cell.beyond.overload_per_s)}"
        rates = "Overload test: offered (dashed), answered and errors, per second, over time"
        yield Plot("rate", rates, f"{rates}, {overload}")
        times = "Overload test: p50 and p99 of response time over time"
        yield Plot("latency", times, f"{times}, {overload}")


def _legend(cell: CellLimit, percentiles: Sequence[str]) -> Iterator[Legend]:
    for name in percentiles:
        yield Legend(name, _COLOURS[name])
    if any(point.overloaded for point in cell.curve):
        yield Legend("did not keep up", 0, "cross")
    for place, answer in enumerate(cell.limits):
        if answer.passed is not None and answer.failed is not None:
            yield Legend(answer.name, band_colour(place), "box")


def _answers_table(report: LimitReport, scale: Scale | None) -> Table:
    """A row per set of objectives of a cell. With a scale, rows have pictures, and names are links."""
    columns = (
        *(Column("server", merged=True), Column("objectives"), Column("met up to", "right")),
        *(Column("missed from", "right"), Column("knee", "right", merged=True), Column("")),
        *((Column("", scale=scale),) if scale else ()),
    )
    names = server_names(report)
    rows = (row for place, cell in enumerate(report.cells) for row in _answer_rows(cell, place, names[place], scale))
    return Table(columns, tuple(rows), look="answers")


def _answer_rows(cell: CellLimit, place: int, named: str, scale: Scale | None) -> Iterator[tuple[TableCell, ...]]:
    name = TextCell(((Span(named, "strong", f"#cell-{place}" if scale else ""),),))
    knee = cell.knee.rate_per_s if cell.knee else None
    known_knee = words(rate_text(knee) if knee else "")
    if not cell.limits:
        yield name, "", "", "", known_knee, ending_text(cell), *(("",) if scale else ())
    for at, answer in enumerate(cell.limits):
        low, high, conditions = answer.passed, answer.failed, ", ".join(answer.conditions)
        strip = Strip(scale, "span", knee, low, high, series=band_colour(at)) if scale else None
        yield (
            name,
            words(answer.name, conditions if conditions != answer.name else ""),
            _side(answer, low, known=answer.met_somewhere),
            _side(answer, high, known=answer.missed_somewhere),
            known_knee,
            words(*_known_how(answer), answer.reason, *answer.doubts),
            *((strip,) if strip else ()),
        )


def _side(answer: LimitAnswer, end: float | None, *, known: bool) -> str:
    return ("not known" if known else "at none") if end is None else answer.said(end)


def _known_how(answer: LimitAnswer) -> tuple[str, ...]:
    """The width of an interval, and how it is known; nothing of a server that changed, which has no single limit."""
    if answer.changed is not None and answer.changed.answers:
        return ()
    return half_width(answer), method_text(answer), _width(answer)


def _width(answer: LimitAnswer) -> str:
    """Advice on an interval that is wider than the goal."""
    if answer.decided:
        return ""
    advice = ": more or longer probes would narrow it" if half_width(answer) and not answer.reason else ""
    return f"wider than the goal{advice}"


def facts_of(cell: CellLimit) -> Iterator[tuple[str, str]]:
    """Yield facts of a cell beside its answers, with headings."""
    facts = (
        ("recording", recording_text(cell)),
        ("search", ending_text(cell)),
        ("search", confirmation(cell)),
        ("time", f"over before {cell.left_out}" if cell.left_out else ""),
        ("warm-up", starts_text(cell)),
        ("client", client_text(cell)),
        *(("answers", text) for text in fmt.encodings(cell.encoded)),
        ("host", cell.host),
        *(("requests failed", text) for text in failures_lines(cell.probes)),
        ("knee", knee_text(cell)),
        *(("overload test", text) for text in overload_texts(cell)),
    )
    return ((name, text) for name, text in facts if text)


def answer_text(answer: LimitAnswer) -> str:
    """`met up to 1,720/s, missed from 1,817/s (±2.7%)`; for an unknown side, what is known of it."""
    what = "number of users" if answer.by_users else "rate"
    met = "up to where it is met is not known" if answer.met_somewhere else f"met at no {what} that was tried"
    if answer.passed is not None:
        met = f"met up to {answer.said(answer.passed)}{_at_once(answer, answer.passed_users)}"
    missed = "from where it is missed is not known" if answer.missed_somewhere else "missed at none"
    if answer.failed is not None:
        missed = f"missed from {answer.said(answer.failed)}{_at_once(answer, answer.failed_users)}"
    width = half_width(answer)
    return f"{met}, {missed} ({width})" if width else f"{met}, {missed}"


def _at_once(answer: LimitAnswer, talking: float | None) -> str:
    return "" if answer.by_users or talking is None else f" ({talking:,.0f} users at once)"


def half_width(answer: LimitAnswer) -> str:
    """`±2.7%` of the middle; empty if a side is open."""
    low, high = answer.passed, answer.failed
    return "" if low is None or high is None else f"±{percent((high - low) / (high + low))}"


def method_text(answer: LimitAnswer) -> str:
    """Say briefly how the interval is known: with several workers its coverage is below its confidence.

    So it is if starts differ. Where probes differ it is not known: rare pauses look like a speed that varies.
    """
    if answer.probes_differ:
        return "by how probes differ: how often that is right is not known"
    if answer.confidence is None:
        single = "by single numbers of users" if answer.by_users else "by single rates"
        return f"by how starts differ, and {single}" if answer.starts_differ else single
    if answer.starts_differ:
        return f"{percent(answer.confidence)} interval, by how starts differ: they are few, so it may be too sure"
    return f"{percent(answer.confidence)} interval, by the model of a queue with one worker"


def ending_text(cell: CellLimit) -> str:
    """Say how the search ended, unless it answered all sets; otherwise empty."""
    match cell.ended:
        case "converged":
            return ""
        case "doomed":
            return f"no limit: {cell.reason}"
        case "exhausted":
            nowhere = any(limit.passed is None for limit in cell.limits)
            everywhere = any(limit.failed is None for limit in cell.limits)
            begin = "another" if nowhere == everywhere else "a lower" if nowhere else "a higher"
            what = "number of users" if cell.by_users else "rate" if cell.stretch is None else "speed"
            begin = "give longer probes (-d)" if "-d" in flags_next(cell) else f"begin at {begin} {what} (--start)"
            if cell.left_out:
                probes = fmt.count(len(cell.probes), "probe")
                return f"no limit: the time was over after {probes}; give more, or {begin}"
            used = f"all {sum(probe.phase != 'curve' for probe in cell.probes)} probes are used up"
            return f"no limit: {used}; {begin}, or allow more (--probes)"
        case "broken":
            return f"broken: {cell.reason}; this is what was known by then"
        case "interrupted":
            return "interrupted: this is what was known by then"


def confirmation(cell: CellLimit) -> str:
    """Say whether the ends were tried again, and agreed; empty without an answer to confirm."""
    if cell.ended != "converged":
        return ""
    starts = len({probe.start for probe in cell.probes if probe.phase == "confirm" and probe.fresh})
    where = f" on {starts} fresh start{'s' if starts > 1 else ''} of the server" if starts else ""
    return f"{'confirmed' if cell.confirmed else 'not confirmed'} at both ends{where}"


def recording_text(cell: CellLimit) -> str:
    """How even the requests of a recording are, whose rates are means; empty for loads with a rate."""
    if cell.stretch is None:
        return ""
    return f"rates are means; the busiest tenth of its time has {significant(cell.stretch.peak, 2)} times the mean rate"


def warm_up_text(start: LimitStart) -> str:
    """How a start was warmed up: `steady after 12.5 s`."""
    after = duration(start.warmed_ns)
    if start.steady is None:
        return f"warmed up for {after}"
    return f"steady after {after}" if start.steady else f"still changing after {after}"


def starts_text(cell: CellLimit) -> str:
    """How the starts were warmed up; empty if none was."""
    texts = [warm_up_text(start) for start in cell.starts]
    if len(texts) <= 1:
        return "".join(texts)
    if len(set(texts)) == 1:
        return f"each of {len(texts)} starts {texts[0]}"
    return "; ".join(f"start {number} {text}" for number, text in enumerate(texts, 1))


def knee_text(cell: CellLimit) -> str:
    """`at 1,003/s (780 to 1,240/s) …, 50% of the highest answered rate`, or why not; empty if nobody looked."""
    knee = cell.knee
    if knee is None:
        return f"not known: {cell.no_knee}" if cell.no_knee else ""
    share = "" if knee.share is None else f", {percent(round(knee.share, 2))} of the highest answered rate"
    bounds = f"{knee.low_per_s:,.0f} to {rate_text(knee.high_per_s)}"
    return f"at {rate_text(knee.rate_per_s)} ({bounds} are within 5%), mean {duration(knee.mean_ns)}{share}"


def _goodput(beyond: Beyond) -> str:
    """Describe the answers to a load above the server's capacity."""
    offered = f"offered {rate_text(beyond.overload_per_s)} for {significant(beyond.overload_s, 2)} s"
    if beyond.goodput == "not known" or beyond.goodput_share is None:
        return f"{offered}: not known, {beyond.reason}"
    share = f"{percent(round(beyond.goodput_share, 2))} of its capacity of {rate_text(beyond.capacity_per_s)}"
    errors = f", and {beyond.errors_overload:,} errors" if beyond.errors_overload else ""
    if beyond.collapsed_after_s is not None:
        fell = f"below half after {significant(beyond.collapsed_after_s, 2)} s"
        return f"{offered}, it collapses: {share}, {fell}{errors}"
    return f"{offered}, it {beyond.goodput}: {share}{errors}"


def _recovery(beyond: Beyond) -> str:
    """Say whether the server recovered at the rate that it kept up with before."""
    back_at = f"back at {rate_text(beyond.calm_per_s)}"
    p99 = ""
    if beyond.p99_before_ns is not None and beyond.p99_after_ns is not None:
        p99 = f"; p99 {duration(beyond.p99_before_ns)} before, {duration(beyond.p99_after_ns)} after"
    match beyond.recovery:
        case "recovers":
            gone = "" if beyond.backlog_gone_s is None else f" (the backlog after {_seconds(beyond.backlog_gone_s)})"
            after = "within that time" if beyond.back_s is None else f"after {_seconds(beyond.back_s)}"
            return f"{back_at}, it recovers {after}{gone}{p99}"
        case "stays slow":
            return f"{back_at}, it stays slow: hysteresis{p99}"
        case "does not come back":
            reason = f": {beyond.reason}" if beyond.reason else ""
            return f"{back_at}, it does not come back within {_seconds(beyond.after_s)}: hysteresis{reason}"
        case "not known":
            return f"{back_at}: not known, {beyond.reason}"


def _seconds(seconds: float) -> str:
    return "at once" if seconds <= 0 else f"{significant(seconds, 2)} s"


def overload_texts(cell: CellLimit) -> tuple[str, ...]:
    """Goodput and recovery, or why there was no overload test."""
    if cell.beyond is None:
        return (f"not tried: {cell.no_beyond}",) if cell.no_beyond else ()
    return _goodput(cell.beyond), _recovery(cell.beyond)


def client_text(cell: CellLimit) -> str:
    """Say where something other than the server was the limit, or how many probes it spoiled that others replace.

    Empty if there is none, or if the search's reason says it.
    """
    clients = [probe for probe in cell.probes if probe.is_void]
    if not clients or cell.ended == "doomed":
        return ""
    known = {probe.tried for probe in cell.probes if not probe.is_void}
    if unknown := [probe for probe in clients if probe.tried not in known]:
        highest = max(unknown, key=lambda probe: probe.tried)
        return f"the server was not the limit at {highest.said}: {highest.client}"
    count = fmt.count(len(clients), "probe")
    first = clients[0]
    return f"{count} gave no result, for example at {first.said}: {first.client}"


def search_findings(report: LimitReport) -> Iterator[Section]:
    """Yield the findings, gravest first: those about servers, then those about probes, without notes about these."""
    of_servers: dict[tuple[FindingKind, str], list[_Found]] = {}
    of_probes: dict[tuple[FindingKind, Grade], list[_Found]] = {}
    for cell in report.cells:
        for finding in cell.findings:
            if finding.position is None:
                of_servers.setdefault((finding.kind, finding.message), []).append((cell, finding))
            elif finding.grade is not Grade.NOTE:
                of_probes.setdefault((finding.kind, finding.grade), []).append((cell, finding))
    names = {cell.slug: server_names(report)[place] for place, cell in enumerate(report.cells)}
    found = [(alike[0][1], ", ".join(names[cell.slug] for cell, _ in alike)) for alike in of_servers.values()]
    for alike in of_probes.values():
        cell, first = alike[0]
        probes = sum(len(cell.probes) for cell in report.cells)
        of = f" of {names[cell.slug]}" if len(report.cells) > 1 else ""
        tried = cell.probes[first.position or 0].said
        found.append((first, f"{len(alike)} of {fmt.count(probes, 'probe')}, for example at {tried}{of}"))
    items = tuple(_item(*each) for each in sorted(found, key=lambda each: -each[0].grade.weight))
    if items:
        yield Section("Findings", (Items(items, folded=True),), anchor="findings", count=len(items))


def server_names(report: LimitReport) -> Sequence[str]:
    """The names of the cells: those of their servers, if cells differ in nothing else."""
    alike = len({cell.slug.removeprefix(cell.server) for cell in report.cells}) == 1
    return [cell.server if alike else cell.slug for cell in report.cells]


def _item(finding: Finding, where: str) -> Item:
    head = line((f"{fmt.GRADE_MARKS[finding.grade]} {finding.grade}", finding.grade), " ", (finding.kind, "strong"))
    return Item(head, (line(finding.message), line(f"→ {finding.advice}"), line((f"in {where}", "dim"))))


OUTLINE = Outline(
    _head,
    (
        Chapter(limit_answer, leads=True),
        Chapter(lambda report: _curves(report) if len(report.cells) == 1 else (), on=Medium.PAGE, leads=True),
        Chapter(limit_caveats, leads=True),
        Chapter(_probes, on=Medium.TERMINAL),
        Chapter(_answers),
        Chapter(ratio_section, on=Medium.WRITTEN),
        Chapter(lambda report: _curves(report) if len(report.cells) > 1 else (), on=Medium.PAGE),
        Chapter(_around, on=Medium.TEXT),
        Chapter(searched_tables),
        Chapter(search_findings),
        Chapter(lambda report: skipped_section(report.skipped)),
        Chapter(lambda report: hosts_section(report.hosts)),
        Chapter(_repeat, on=Medium.WRITTEN),
    ),
    _figures,
    headed=Medium.MARKDOWN,
)
