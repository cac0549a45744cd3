"""`redline load`: load a server that is already running, a command, or the only server of redline.yaml."""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.console import Console

from redline import running
from redline.analysis.intervals import interval_row
from redline.analysis.own_servers import own_server
from redline.cli import exits, places, question
from redline.cli.command_line import LoadFlags
from redline.cli.contracts import LoadResult, StreamSummary
from redline.cli.flags import command_line, read_workers
from redline.cli.following import followed
from redline.cli.line_stream import LineStream
from redline.cli.load_flags import as_like, load_suite
from redline.cli.load_panel import LoadPanel
from redline.cli.load_view import like_section, load_result, load_section, spectrum_section
from redline.cli.origins import project_here
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_servers
from redline.cli.show import show, write_json
from redline.cli.targets import check_targets
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.errors import DriveError, LaunchError, UsageError
from redline.findings import servers_doing
from redline.model import Cell, Interval, PlannedTrial, Recording
from redline.plugins.drivers.engine import EngineDriver
from redline.plugins.launchers.variables import check_variables
from redline.plugins.telemetry.meter import Meter, MeteredTrial
from redline.ports import Driver, Endpoint, Launch, LoadOptions
from redline.running.assembly import Workbench, Workplace
from redline.running.manifests import Source, new_manifest
from redline.running.record import failure_of, new_recording, record_load, verify
from redline.storage.runs import RunStore
from redline.suite import make_plan

_TRIAL = "trial-1"


def execute(flags: LoadFlags) -> None:
    """Load a server: closed with -c users, or open at -R requests per second."""
    _check_printed(flags)
    flags, like = as_like(flags)
    with ExitStack() as stack:
        console = progress_console(flags)
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        workplace = Workplace(None, stack, places.of_suite, on_usage, turn_of(flags, "redline load", console))
        folder = flags.output or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "load"
        stream = stack.enter_context(LineStream()) if flags.stream else None
        outputs = LoadOutputs(console, stream, meter)
        _, recording, result = measure(flags, folder, workplace, outputs)
        question.settle()
        if stream is not None:
            stream.write(StreamSummary(result=result))
    if flags.json:
        write_json(result)
    elif not flags.stream:
        spectrum = [spectrum_section(result, recording)] if flags.spectrum else []
        times = recording.traffic.response if recording.traffic and flags.verbose else None
        show([*spectrum, *([like_section(like)] if like else []), load_section(result, times)])
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)
    if code := exit_code(result):
        raise typer.Exit(code)


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


def measure(
    flags: LoadFlags, folder: Path, workplace: Workplace, outputs: LoadOutputs
) -> tuple[RunStore, Recording, LoadResult]:
    """Make the load that the flags ask for, and keep it in a folder. Raises RedlineError."""
    project = project_here() if flags.url is None else None
    if flags.follow:
        flags = followed(flags, outputs.console)
    suite, text = load_suite(flags, project)
    check_targets(suite, flags.mine)
    check_variables(suite.variants)
    workers, store = read_workers(flags.threads, suite.loads[0].connections), RunStore(folder)
    store.check_free()
    workplace.take_turn()
    if project is not None:
        build_servers(project, suite, outputs.console)
    bench, plan = workplace.bench(Path(), suite), make_plan(suite)
    source = Source(command_line(flags), text=text, kind="load")
    if flags.recorded is not None:
        source = replace(source, text=flags.recorded.suite(text), kept=flags.recorded.kept)
    store.create(new_manifest(folder.resolve().name, source, plan, bench), source.kept)
    (cell,) = plan.cells.values()
    with LoadPanel(cell, outputs.console, alive=outputs.stream is None) as panel:
        shown = _Shown(cell, panel, outputs.console, outputs.stream, outputs.meter)
        recorded = _record(cell, workers, suite.seed, bench, store, shown, is_kept=flags.output is not None)
    recording, checked, asked_again = recorded
    if flags.output is not None:
        running.write_run_views(store)
    url = flags.url or own_server(cell.variant, cell.scenario.request.path)
    return store, recording, load_result(url, cell, recording, suite.objectives, checked, asked_again)


@dataclass(frozen=True)
class _Shown:
    """Where the intervals of a load go while it runs."""

    cell: Cell
    panel: LoadPanel
    console: Console
    stream: LineStream | None
    meter: Meter | None

    def seen(self, interval: Interval) -> None:
        self.panel.seen(interval)
        if self.stream is not None:
            self.stream.write(interval_row(self.cell.slug, _TRIAL, interval))
        if self.meter is not None:
            self.meter.interval(MeteredTrial.of(self.cell, _TRIAL), interval)


def exit_code(result: LoadResult) -> int:
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


def _is_known(result: LoadResult) -> bool:
    """Whether an invalid load has shown something of a server that did not fail."""
    return result.throughput is not None and not servers_doing(result.findings)


def _record(
    cell: Cell,
    workers: int,
    seed: int,
    bench: Workbench,
    store: RunStore,
    shown: _Shown,
    *,
    is_kept: bool,
) -> tuple[Recording, int, str]:
    """Load the server, and store the recording; Ctrl-C ends the load early. Raises DriveError without a recording.

    Returns also how many requests checked the answers before, and which request is answered wrongly, and how, if
    that is known.
    """
    planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=seed)
    store.create_folder("logs")
    logs, tools = store.folder / "logs", bench.tools
    options = LoadOptions(
        log=logs / "engine.log",
        server_log=None if cell.variant.is_attached else logs / "server.log",
        log_is_kept=is_kept,
        workers=workers,
        keep_interrupted=True,
        on_interval=shown.seen,
    )
    launch = Launch(cell.variant, tools.placement, logs / "server.log", log_is_kept=is_kept)
    recording: Recording | None = None
    checked, asked_again = 0, ""
    try:
        with tools.launcher.running(launch) as server:
            if (wrong := verify(cell, server, tools.driver)) is not None:
                recording = new_recording(planned).failed(wrong, server.facts)
            else:
                checked = tools.driver.asked if isinstance(tools.driver, EngineDriver) else 0
                _say_cookies(tools.driver, shown.console)
                recording = record_load(cell, planned, server, tools, options)
            asked_again = _asked_again(cell, recording, tools.driver, server.endpoint)
    except LaunchError as error:  # keep the measurement, since only the server's end failed
        if recording is None:
            raise
        stopped = failure_of("stop", error.kind, error, error.log_tail)
        recording = recording.failed(recording.failure or stopped)
    store.save(recording, cell)
    if recording.traffic is None and recording.failure is not None:
        raise DriveError(recording.failure.message, hint=recording.failure.hint)
    return recording, checked, asked_again


def _say_cookies(driver: Driver, console: Console) -> None:
    """Say that a server sets cookies, which no request of the load sends back."""
    if isinstance(driver, EngineDriver) and driver.cookies:
        names = ", ".join(driver.cookies)
        said = f"the answers set cookies ({names}), which no request sends back; to send some, give -H 'Cookie: …'"
        console.print(said, style="yellow", highlight=False, markup=False, soft_wrap=True)


def _asked_again(cell: Cell, recording: Recording, driver: Driver, endpoint: Endpoint) -> str:
    """Send each of several requests once more after wrong answers: the load counts them without their requests.

    Returns the first request with a wrong answer, and how it is wrong; empty if all are answered right by now, and
    after an interrupt.
    """
    traffic = recording.traffic
    if traffic is None or traffic.ended == "interrupted" or len(cell.scenario.requests) == 1:
        return ""
    outcomes = traffic.counts.outcomes
    if not outcomes.unexpected_status + outcomes.unexpected_body:
        return ""
    try:
        return driver.verify(cell, endpoint) or ""
    except (DriveError, KeyboardInterrupt):  # the load was measured all the same
        return ""
