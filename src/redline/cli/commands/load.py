"""`redline load`: load a server that is already running, a command, or the only server of redline.yaml."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from redline import analysis, findings, report, running
from redline.asking import places
from redline.asking.asks import Listed, LoadAsk
from redline.asking.like import Like
from redline.asking.load import load_document, load_suite
from redline.asking.naming import read_workers
from redline.asking.opening import Command, source_of
from redline.asking.origins import project_here
from redline.cli import exits, question
from redline.cli.asks import load_ask
from redline.cli.browser import check_is_kept, open_page
from redline.cli.command_line import LoadFlags
from redline.cli.destination import Destination
from redline.cli.flags import command_line, refuse
from redline.cli.following import followed
from redline.cli.line_stream import LineStream
from redline.cli.load_panel import LoadPanel
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_servers
from redline.cli.show import show, write_json
from redline.cli.suite_files import OF_MEASURING, WHY, write_suite
from redline.cli.targets import check_targets
from redline.cli.telemetry import Meter, MeteredTrial, metered
from redline.cli.turns import turn_of
from redline.defaults import NO_WARM_UP
from redline.driving.secrets import hide
from redline.entry_points import extra
from redline.errors import DriveError, RedlineError, UsageError
from redline.files import as_store_error, write_atomically
from redline.launching.variables import check_variables
from redline.lazily import dataclass
from redline.model import Cell, Frozen, Interval, Recording, Suite
from redline.ports import Launcher
from redline.running.assembly import Workplace, builds_servers
from redline.running.single import LoadFollower, SingleTrial
from redline.running.views_ahead import OF_VIEWS
from redline.schema.document import Document
from redline.storage.runs import RunStore
from redline.suite.urls import is_secure, is_url
from redline.wording import part

if TYPE_CHECKING:  # what a load has at its end
    from redline.document.blocks import Section
    from redline.model import CellReport, Report
    from redline.model.load_result import LoadResult

_TRIAL = "trial-1"


def execute(flags: LoadFlags) -> None:
    """Load a server: closed with -c users, or open at -R requests per second."""
    _check_printed(flags)
    own = flags
    flags, like = as_like(flags)
    console = progress_console(flags)
    if flags.write_suite is not None:
        refuse(own.given(among={*OF_MEASURING, "threads"}), WHY)
        _write_suite(flags, like, flags.write_suite, console)
        return
    kept = Destination.at(flags.output)
    check_is_kept(opens=flags.open, is_kept=kept.page is not None)
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of("redline load", console, flags.wait, alone=flags.alone)
        workplace = Workplace(None, stack, places.of_suite, on_usage, turn)
        folder = kept.folder or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "load"
        stream = stack.enter_context(LineStream()) if flags.stream else None
        outputs = LoadOutputs(console, stream, meter)
        order = LoadOrder(
            _load_ask(flags, like, console),
            command_line,
            folder,
            is_kept=kept.folder is not None,
            needs_report=kept.file is not None,
            log=flags.log,
            later=OF_VIEWS if kept.file else (),
        )
        loaded = measure(order, workplace, outputs)
        result = loaded.result
        question.settle()
        if stream is not None:
            from redline.model.load_result import StreamSummary  # noqa: PLC0415 - imported while the server warms up

            stream.write(StreamSummary(result=result))
    if flags.json:
        write_json(result)
    elif not flags.stream:
        spectrum = [report.spectrum_section(loaded.cell, loaded.recording)] if flags.spectrum else []
        as_wrk = like is not None and like.has_deviations
        shown = report.load_section(loaded.cell, result.url, whole=flags.verbose, as_wrk=as_wrk)
        show([*spectrum, *([_like_section(like)] if like else []), shown])
    kept.write(loaded.report, console)
    if flags.open and kept.page is not None:
        open_page(kept.page, console)
    if loaded.unlogged is not None:
        raise loaded.unlogged
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)
    if code := exit_code(result):
        raise typer.Exit(code)


def as_like(flags: LoadFlags) -> tuple[LoadFlags, Like | None]:
    """Return the flags with the load of `--like`, if given; other flags take precedence. Raises UsageError."""
    if flags.like is None:
        return flags, None
    like: Like = extra("like", "--like")(flags.like)
    if user := str(like.flags.get("user") or ""):
        shown = f"{user.partition(':')[0]}:***"
        hide(flags.like, flags.like.replace(user, shown) if user in flags.like else f"{like.tool} …")
    own = {name: getattr(flags, name) for name in flags.declared()}
    given = {name: value for name, value in own.items() if name in flags.typed or flags.given(among={name})}
    if "duration" in given:
        given = {"count": flags.count} | given
    values = own | dict(like.flags) | given
    if values["url"] is not None and not (is_url(str(values["url"])) and is_secure(str(values["url"]))):
        values |= {"insecure": flags.insecure, "cacert": flags.cacert}
    return LoadFlags(**values | {"typed": flags.typed}), like


def _like_section(like: Like) -> "Section":
    """Facts that the other tool does not report of such a load, and parts of its command without a counterpart."""
    from redline.document.blocks import Prose, Section  # noqa: PLC0415 - imported while the server warms up

    said = [f"- {text[0].upper()}{text[1:]}." for text in like.says]
    ignored = [f"Without a counterpart here: {' '.join(like.ignored)}."] if like.ignored else []
    return Section(f"What {like.tool} does not say", (Prose.of((*said, *ignored)),))


def _load_ask(flags: LoadFlags, like: Like | None, console: Console) -> LoadAsk:
    """What flags ask for, of the URL to which redirects lead. Raises UsageError."""
    ask = load_ask(flags)
    if like is not None and like.requests and flags.requests is None:
        document = Document("--like", [*like.requests], {}, {})
        ask = replace(ask, listed=Listed(document, is_traffic=True))
    return followed(ask, console) if flags.follow else ask


def _write_suite(flags: LoadFlags, like: Like | None, file: Path, console: Console) -> None:
    """Write what flags ask for as a suite. Raises RedlineError."""
    project = project_here() if flags.url is None else None
    threads = f"the engine has a worker on each of its cores, not {flags.threads}"
    ask = _load_ask(flags, like, console)
    write_suite(ask, file, project, load_document, console, differs=[threads] if flags.threads > 1 else [])


def _check_printed(flags: LoadFlags) -> None:
    """Raise UsageError where flags ask for different things on stdout."""
    if flags.spectrum and flags.json:
        raise UsageError(
            "--spectrum is for people, and --json prints its percentiles anyway",
            hint="leave one out; for other programs keep the load: -o DIR, and redline report DIR --format hgrm",
        )
    if flags.stream and (other := flags.given(among={"json", "spectrum"})):
        raise UsageError(
            f"--stream writes lines of JSON to stdout, and takes no {' or '.join(other)}",
            hint="leave one out: the last line of the stream is what --json prints",
        )


@dataclass(frozen=True)
class LoadOutputs:
    """Where the progress of a load goes: a console, and besides a stream of lines or a meter."""

    console: Console
    stream: LineStream | None = None
    meter: Meter | None = None


@dataclass(frozen=True)
class LoadOrder:
    """What is asked for by which command or call, and the folder for it, which stays if it `is_kept`.

    Without it, recordings are stored and judged as a report where it `needs_report`. Single requests are written to
    the file `log`, if one is given. `later` names what is imported while the server warms up (`LoadOptions`).
    """

    ask: LoadAsk
    command: Command
    folder: Path
    is_kept: bool
    needs_report: bool = False
    log: Path | None = None
    later: Sequence[str] = ()


@dataclass(frozen=True)
class Loaded:
    """A load that was measured, and its report if it is kept, or needed. `unlogged`: why it has no log."""

    store: RunStore
    recording: Recording
    cell: "CellReport"
    result: "LoadResult"
    report: "Report | None"
    unlogged: RedlineError | None = None


def measure(order: LoadOrder, workplace: Workplace, outputs: LoadOutputs) -> Loaded:
    """Make a load, and keep it in its folder. Raises RedlineError."""
    ask, folder = order.ask, order.folder
    log = None if order.log is None else RequestLog.at(order.log)
    project = project_here() if ask.server is None else None
    suite, text = load_suite(ask, project, with_text=order.is_kept)
    check_targets(suite, ask.target_is_mine)
    if outputs.meter is not None:
        outputs.meter.check(suite)
    check_variables(suite.variants)
    workers, store = read_workers(ask.threads, suite.loads[0].connections), RunStore(folder)
    if order.is_kept:
        store.check_free()
    workplace.take_turn()
    if project is not None:
        build_servers(project, suite, outputs.console)
    bench = workplace.bench(Path(), suite) if order.is_kept or order.needs_report else None
    tools = workplace.tools(Path(), suite) if bench is None else bench.tools
    if builds_servers(suite):
        _build(suite, tools.launcher, outputs.console)
    if bench is None:
        session = SingleTrial.passing(suite, store, tools)
    else:
        session = SingleTrial.create(suite, source_of(ask, order.command, text, "load"), store, bench)
    cell = session.cell
    with LoadPanel(cell, outputs.console, alive=outputs.stream is None) as panel:
        shown = _Shown(cell, panel, outputs, analysis.interval_row if outputs.stream else None)
        follower = LoadFollower(shown.seen, shown.cookies)
        raw = workplace.stack.enter_context(tempfile.TemporaryDirectory()) if log else None
        recording = session.execute(
            workers,
            follower,
            is_kept=order.is_kept,
            request_log=None if raw is None else Path(raw),
            later=order.later,
        )
    if outputs.meter is not None:
        outputs.meter.trial(MeteredTrial.of(cell, _TRIAL), cell, recording)
    reported = None if bench is None else running.write_run_views(store, is_kept=order.is_kept)
    judged = reported.cells[0] if reported else analysis.judged_load(suite, cell, recording)
    unlogged = None
    if log is not None and raw is not None:
        try:
            log.write(Path(raw), recording, cell, outputs.console)
        except RedlineError as error:
            unlogged = error
    facts = judged.load_facts
    if facts is None or (facts.measured_ns <= 0 and facts.ended not in ("interrupted", "failing", "aborted")):
        raise _unmeasured(cell, recording)
    return Loaded(store, recording, judged, analysis.result_of_load(judged, ask.server or ""), reported, unlogged)


def _unmeasured(cell: Cell, recording: Recording) -> DriveError:
    """Return why nothing was measured, although the load ended by itself."""
    journeys, walked = recording.traffic and recording.traffic.journeys, cell.scenario.journey
    if journeys and journeys.rows_used_up and walked and walked.rows:
        message = f"all {walked.rows.count:,} rows of {walked.rows.file} were used in the warm-up"
        return DriveError(message, hint=f"give more rows, or {part('warmup', NO_WARM_UP)}")
    return DriveError("the load ended before its measurement began", hint="let it run past its warm-up (--warmup)")


def _build(suite: Suite, launcher: Launcher, console: Console) -> None:
    """Build the server if it is of a catalogue and not built. Raises BuildError."""
    from redline.cli.build_view import BuildView  # noqa: PLC0415 - most loads have nothing to build

    with BuildView(console) as view:
        failures = launcher.build(suite.variants, view).failures
    for error in failures.values():
        raise error


@dataclass(frozen=True)
class RequestLog:
    """The file for single requests, and what makes it of columns: what is not core, and may lack a package."""

    file: Path
    made: Callable[[Mapping[str, Any]], bytes]

    @classmethod
    def at(cls, file: Path) -> "RequestLog":
        """Raises UsageError before anything is measured: for another ending, a missing folder, or a missing package."""
        if not file.resolve().parent.is_dir():
            raise UsageError(part("log") + f" {file}: there is no folder {file.parent}", hint="make it first")
        if file.is_dir() or not os.access(file if file.exists() else file.resolve().parent, os.W_OK):
            raise UsageError(part("log") + f" {file}: it cannot be written", hint="name another file")
        return cls(file, extra("exports", part("log")).request_writer(file))

    def write(self, raw: Path, recording: Recording, cell: Cell, console: Console) -> None:
        """Write what the engine logged, and say so if it is a sample. Raises StoreError and DriveError."""
        if recording.traffic is None:
            return
        from redline.driving.request_log import read_logged  # noqa: PLC0415 - hardly any load logs requests

        logged = read_logged(raw)
        columns = logged.columns(recording.traffic.epoch_unix_ns, cell.scenario.labels)
        with as_store_error(self.file, begun=False):
            write_atomically(self.file, self.made(columns))
        if logged.one_of > 1:
            text = f"{self.file} has {len(logged.rows):,} of {logged.ended:,} requests: one in {logged.one_of}"
            console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class _Shown:
    """Where the intervals of a load go while it runs."""

    cell: Cell
    panel: LoadPanel
    outputs: LoadOutputs
    as_row: Callable[[str, str, Interval], Frozen] | None

    def seen(self, interval: Interval) -> None:
        self.panel.seen(interval)
        if self.outputs.stream is not None and self.as_row is not None:
            self.outputs.stream.write(self.as_row(self.cell.slug, _TRIAL, interval))
        if self.outputs.meter is not None:
            self.outputs.meter.interval(MeteredTrial.of(self.cell, _TRIAL), interval)

    def cookies(self, names: tuple[str, ...]) -> None:
        """Say that a server sets cookies, which no request of the load sends back."""
        cookie = part("headers", "Cookie: …")
        text = f"the answers set cookies ({', '.join(names)}), which no request sends back; to send some, give {cookie}"
        self.outputs.console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


def exit_code(result: "LoadResult") -> int:
    """3 for an aborted load or a missed objective; else 1 if nothing is known, or the server failed.

    Else 3 for an unknown objective.

    An invalid load that shows all objectives to be met has answered the question.
    """
    if result.ended == "aborted":
        return exits.MISSED
    states = {objective.state for objective in result.objectives}
    if "missed" in states:
        return exits.MISSED
    if not (result.valid or _is_known(result)) and states != {"met"}:
        return exits.COULD_NOT_RUN
    return exits.MISSED if "not known" in states else exits.DONE


def _is_known(result: "LoadResult") -> bool:
    """Whether an invalid load has shown something of a server that did not fail."""
    return result.throughput is not None and not findings.servers_doing(result.findings)
