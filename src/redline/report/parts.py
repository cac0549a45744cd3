"""Sections that several kinds of report share: skipped cells, and how to repeat the experiment."""

from collections.abc import Container, Iterable, Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import (
    Code,
    Column,
    Facts,
    Fold,
    Item,
    Items,
    Medium,
    Prose,
    Section,
    ServerCell,
    Table,
    TableCell,
    line,
)
from redline.model import CellReport, Environment, Grade, LostStarts, PairSpeed, RunReport, Skipped, UsedHost

INTERRUPTED = ", interrupted"
"""The end of what is said to be done in a comparison that lacks starts."""
_SHARES = ("steal_share", "busy_share")


def server_cell(cell: CellReport, series: int) -> ServerCell:
    """The server of a cell, if only its name and colour matter."""
    return ServerCell(cell.server, "ceiling" if cell.role == "ceiling" else "", valid=cell.valid, series=series)


def server_table(
    title: str,
    heads: Iterable[str],
    rows: Iterable[tuple[ServerCell, Iterable[TableCell]]],
    *,
    left: Container[str] = (),
    on: Medium = Medium.PAGE,
) -> Table:
    """A table with the server in its first column, once for successive rows; `left` are columns of words."""
    columns = (Column(head, "left" if head in left else "right") for head in heads)
    cells = tuple((server, *row) for server, row in rows)
    return Table((Column("server", merged=True), *columns), cells, line((title, "strong")), on=on)


def machine_line(machine: Environment) -> str:
    """`AMD EPYC 7763 64-Core Processor, 2 cores`."""
    return f"{machine.cpu_model or 'unknown CPU'}, {machine.cores} core{'' if machine.cores == 1 else 's'}"


def machine_facts(machine: Environment) -> Iterator[tuple[str, str]]:
    """Yield the facts of the environment, by name; missing facts are `unknown`."""
    for name in Environment.model_fields:
        value = getattr(machine, name)
        if value is None or value in ("", ()):
            text = "cores not fixed" if name.endswith("_cpus") else "unknown"
        elif name.endswith("_bytes"):
            text = fmt.size(value)
        elif name in _SHARES:
            text = fmt.percent(value)
        elif isinstance(value, bool):
            text = "on" if value else "off"
        elif name == "port_range":
            text = f"{value[0]} to {value[1]}"
        else:
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield name.removesuffix("_bytes").replace("_", " "), text


def hosts_section(hosts: Sequence[UsedHost], pairs: Sequence[PairSpeed] = ()) -> Iterator[Section]:
    """The hosts of trials, and how pairs compared before the run; empty if all ran on this machine."""
    compared = {pair.host: _speed_line(pair) for pair in pairs}
    items = (
        Item(
            line((host.name, "strong"), f" {host.role}, {host.address}"),
            (
                line(f"{machine_line(host.environment)}, kernel {host.environment.kernel}"),
                *((line(compared[host.name]),) if host.role == "server" and host.name in compared else ()),
            ),
        )
        for host in hosts
    )
    if hosts:
        yield Section(f"Hosts: {len(hosts)}", (Items(tuple(items)),), anchor="hosts")


def _speed_line(pair: PairSpeed) -> str:
    """`before the run 37.1 µs of CPU time for a request, 1.02 [1.00, 1.04] times that of the other hosts`."""
    if pair.cpu_per_request_ns is None:
        return f"before the run all {fmt.count(pair.failed, 'start')} failed"
    text = f"before the run {fmt.duration(pair.cpu_per_request_ns)} of CPU time for a request"
    if pair.ratio is not None and pair.ratio.low is not None and pair.ratio.high is not None:
        ends = f"[{fmt.NOT_KNOWN if pair.ratio.says_nothing else f'{pair.ratio.low:.2f}, {pair.ratio.high:.2f}'}]"
        text += f", {pair.ratio.value:.2f} {ends} times that of the other hosts"
    return text + (f"; {fmt.count(pair.failed, 'start')} failed" if pair.failed else "")


def skipped_section(skipped: Sequence[Skipped]) -> Iterator[Section]:
    """The reasons, with the cells; empty if nothing was skipped."""
    reasons: dict[str, list[str]] = {}
    for skip in skipped:
        reasons.setdefault(skip.reason, []).append(skip.slug)
    items = (Item(line(reason), (line((", ".join(slugs), "dim")),)) for reason, slugs in reasons.items())
    if reasons:
        yield Section(f"Skipped: {fmt.count(len(skipped), 'cell')}", (Items(tuple(items)),), anchor="skipped")


def lost_section(lost: Sequence[LostStarts]) -> Iterator[Section]:
    """How many starts of which servers are lost, why, and what to do about it; empty if none is."""
    if not lost:
        return
    items = (
        Item(
            line((f"{starts.lost} of {fmt.count(starts.made, 'start')}", Grade.WARN), f" of {lost_name(starts)}"),
            tuple(line((text, "dim")) for text in (starts.reason, starts.hint) if text),
        )
        for starts in lost
    )
    count = fmt.count(sum(starts.lost for starts in lost), "start")
    yield Section(f"Lost: {count}", (Items(tuple(items)),), anchor="lost")


def lost_name(lost: LostStarts) -> str:
    """`A | B mix.load`: servers that were started together, and their scenario and load."""
    return f"{' | '.join(lost.servers)} {lost.scenario}.{lost.load}"


def page_facts(machine: Environment, started_unix_ns: int, done: str, seed: int) -> tuple[str, ...]:
    """The facts below the title of a page."""
    commit, plus, dirty = machine.commit.partition("+")
    version = f"redline {machine.redline}" + (f" ({commit[:10]}{plus}{dirty})" if commit else "")
    begun = fmt.instant(started_unix_ns)
    return (begun, done, machine_line(machine), f"kernel {machine.kernel}", f"seed {seed}", version)


def done_text(run: RunReport) -> str:
    """`9 of 9 trials`; for duets alone `14 starts in 60 s`; with commands around the starts, also their time.

    The time until servers are ready is in it where it is most of the time.
    """
    if run.same is not None:
        return "nothing was measured"
    set_up = f", and {fmt.duration(run.setup_seconds * 1e9)} of setting up" if run.setup_seconds else ""
    if run.alone:
        return f"{run.trials_done} of {run.trials_planned} trials{set_up}"
    cut = INTERRUPTED if run.interrupted else ""
    slow = 2 * run.launch_seconds > run.seconds
    waited = f", {fmt.duration(run.launch_seconds * 1e9)} of it until servers were ready" if slow else ""
    return f"{fmt.count(run.starts, 'start')} in {fmt.duration(run.seconds * 1e9)}{waited}{set_up}{cut}"


def repeat_section(
    what: str, command: str, facts: dict[str, str], machine: Environment, suite: str, *folds: Fold
) -> Section:
    """How to repeat this: the command and the versions; for the page also `folds`, the machine and the suite."""
    everything = Facts((*facts.items(), *machine_facts(machine)))
    parts = (f"redline {machine.redline}", machine.commit, f"kernel {machine.kernel}", command)
    blocks = (
        Prose.of([" · ".join(part for part in parts if part)], on=Medium.TEXT),
        Prose.of(
            ["The same command, seed and versions give the same plan. The rest is the machine."],
            "dim",
            on=Medium.PAGE,
        ),
        Code(command, "Command"),
        *folds,
        Fold(line("Versions and machine"), (everything,), open=False, on=Medium.PAGE),
        *((Fold(line("The suite"), (Code(suite, "Suite"),), open=False, on=Medium.PAGE),) if suite else ()),
    )
    return Section(f"Repeat this {what}", blocks, anchor="repeat")
