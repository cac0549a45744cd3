"""Run an experiment and print its report: the common body of `redline run`, `ab` and `limit`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from redline import model, render, running
from redline.asking import places
from redline.cli import exits, question
from redline.cli.browser import open_page
from redline.cli.commands.check import show_overrun, show_plans
from redline.cli.destination import Destination
from redline.cli.quiet import wait_until_quiet, waited_text
from redline.cli.session_view import SessionView, known_text
from redline.cli.show import insist, show
from redline.cli.streams import write_document
from redline.cli.telemetry import Meter
from redline.errors import UsageError
from redline.lazily import LateModule, late
from redline.model import Suite, Verdict
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.parallel import check_cores
from redline.running.quiet import Quiet
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from redline.suite import make_capacity_plan, make_plan
from redline.watching.machine import plan_placement
from redline.wording import as_argument, part

if TYPE_CHECKING:
    from redline.analysis import compare
    from redline.model import CellReport, Report
    from redline.model.limits import AnyReport, LimitReport
    from redline.report import single, slowest, views
else:  # what judges and shows: the first load begins without it
    compare = LateModule("redline.analysis.compare")
    single, slowest, views = late("redline.report", "single", "slowest", "views")


@dataclass(frozen=True)
class Output:
    """How to print the report, in a format of `RENDERERS` or for people, and which verdicts fail the command.

    `command` resumes an interrupted experiment. Unless `is_kept`, the directory is removed when the command ends; the
    report may go to the file of `kept` all the same. A `meter` follows the loads. If it `opens`, the page is shown in a
    browser. If it `is_brief`, people get the answer of a run, and where all the rest is; if it `is_whole`, the slowest
    requests too. With `quiet`, each start of a run waits for a quiet machine; a run makes further starts for `more_ns`.
    """

    command: str
    form: str | None = None
    fail_on: tuple[Verdict, ...] = ()
    wait_quiet: bool = False
    is_kept: bool = True
    kept: Destination = field(default_factory=Destination)
    meter: Meter | None = None
    opens: bool = False
    is_brief: bool = False
    is_whole: bool = False
    quiet: Quiet | None = None
    more_ns: int = 0


def create(
    suite: Suite,
    source: Source,
    folder: Path,
    workplace: Workplace,
    view: SessionView,
    console: Console,
    *,
    shows_plan: bool = True,
) -> RunSession:
    """Plan a suite, build its servers, and open a directory for it. Raises RedlineError."""
    RunStore(folder).check_free()
    bench, suite, changed = workplace.prepare(Path(source.file), suite)
    for reason in changed:
        console.print(reason, style="yellow", highlight=False, markup=False)
    plan = make_plan(suite)
    if not bench.pairs:
        check_cores(plan, plan_placement().cores)
    if shows_plan:
        show_plans(make_capacity_plan(suite), plan, console)
    else:
        show_overrun(plan, console)
    return RunSession.create(suite, source, folder, bench, view)


def finish(session: RunSession, output: Output, console: Console) -> None:
    """Measure the rest of a session, and print its report. Exits with `exit_code` unless it is 0."""
    with _resumable(session.store, output, console):
        if output.wait_quiet:
            wait_until_quiet(console)
        outcome = session.execute(is_kept=output.is_kept, more_ns=output.more_ns, quiet=output.quiet)
        question.settle()
    stores, reports = zip(*outcome.parts, strict=True)
    _print(session.store, stores, reports[-1], output, console, interrupted=outcome.interrupted)
    if output.quiet is not None and output.quiet.waited_s:
        console.print(f"{waited_text(None, output.quiet.waited_s)}, in all", style="dim", soft_wrap=True)
    if output.command == "run" and outcome.undecided and outcome.undecided.names and not outcome.interrupted:
        more = f"{math.ceil(outcome.undecided.round_ns / 60e9)}m"
        how = f"{places.own_name()} run --resume {as_argument(session.store.folder)} {part('more', more)}"
        text = f"{known_text(outcome.undecided, 0)}: {how}"
        console.print(text, soft_wrap=True, highlight=False, markup=False)
    missing = compare.not_run(stores[-1].manifest().plan) if output.fail_on else ()
    _exit(exits.INTERRUPTED if outcome.interrupted else exit_code(reports, output.fail_on, missing))


def search(session: running.SearchSession, view: SessionView, *, is_kept: bool) -> tuple[LimitReport, bool]:
    """Search the rest. Return the report, and whether the search was interrupted.

    Raises the error of a search that could not begin; where others have found something, prints it.
    """
    view.keeps_errors, view.by_probe = not session.manifest.suite_file, session.manifest.terms.by_probe
    report, interrupted = session.execute()
    if view.keeps_errors and view.error is not None:
        if not any(cell.probes for cell in report.cells):
            raise view.error
        view.print_error(view.error)
    return report if is_kept else report.without_recordings, interrupted


def finish_search(session: running.SearchSession, output: Output, view: SessionView, console: Console) -> None:
    """Search the rest, and print the report. Exits with `search_exit_code` unless it is 0."""
    with _resumable(session.store, output, console):
        if output.wait_quiet or output.quiet is not None:
            with session.uncounted():
                wait_until_quiet(console)
        report, interrupted = search(session, view, is_kept=output.is_kept)
        question.settle()
    _print(session.store, (session.store,), report, output, console, interrupted=interrupted)
    _exit(exits.INTERRUPTED if interrupted else search_exit_code(report, output.fail_on))


def finish_resumed(
    folder: Path,
    workplace: Workplace,
    output: Output,
    console: Console,
    *,
    trials: int | None = None,
    budget_ns: int | None = None,
) -> None:
    """Resume the experiment of any kind in a folder, up to a number of trials or for a longer time."""
    view = SessionView(console, output.meter)
    if RunStore(folder).kind != "search":
        check_compares(running.stored_suite(folder), folder, output)
    elif output.more_ns:
        raise running.not_of_searches("more", folder)
    workplace.take_turn()
    session = running.resume(folder, workplace.bench_for, view, trials, budget_ns)
    if isinstance(session, running.SearchSession):
        finish_search(session, output, view, console)
    else:
        finish(session, output, console)


def check_compares(suite: Suite, where: Path, output: Output) -> None:
    """Raise UsageError where no server of a suite is compared, though further starts or a verdict are asked for."""
    if any(suite.baseline_of(variant.slug) for variant in suite.variants):
        return
    if output.more_ns:
        raise UsageError(
            f"{where} has no baseline, so nothing of it is undecided, and {part('more')} adds nothing",
            hint=f"add rounds with {part('trials')}, or name a baseline",
        )
    if output.fail_on:
        of = "of what is selected no server has its baseline" if suite.baseline or suite.baselines else "no baseline"
        raise UsageError(
            f"{where}: {of}, so nothing is compared, and --fail-on could never fail",
            hint="name a baseline, and select it too; or leave out --fail-on",
        )


def _print(
    whole: RunStore,
    parts: Sequence[RunStore],
    report: AnyReport,
    output: Output,
    console: Console,
    *,
    interrupted: bool,
) -> None:
    """Print the report of the last part, the page of each, and the command that resumes an interrupted experiment."""
    try:
        if output.form:
            write_document(render.RENDERERS[output.form](report))
        else:
            answer = render.brief(report) if output.is_brief else None
            shown = [*(render.summary(report) if answer is None else answer)]
            if output.is_whole and isinstance(report, model.Report):
                shown[1:1] = single.besides_loads(slowest.slowest_section)(report)
            show(shown)
            if answer is not None:
                text = f"all that was measured: {places.own_name()} report {as_argument(parts[-1].folder)}"
                console.print(text, soft_wrap=True, highlight=False, markup=False)
    finally:  # even if the report cannot be printed
        output.kept.write(report, console)
        pages = {store.folder: "report" if store.folder == whole.folder else "capacity" for store in parts}
        lines = [f"{part}: {(folder / 'report.html').resolve()}" for folder, part in pages.items()]
        for line in lines if output.is_kept else ():
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        if interrupted and output.is_kept:
            insist(console, f"interrupted; {_resumed_by(whole, output)}")
    page = output.kept.page or (parts[-1].folder / "report.html" if output.is_kept else None)
    if output.opens and page is not None:
        open_page(page, console)


@contextmanager
def _resumable(store: RunStore, output: Output, console: Console) -> Iterator[None]:
    """Print the command that resumes what an interrupt stopped at once, without an answer."""
    try:
        yield
    except KeyboardInterrupt:
        if output.is_kept:
            insist(console, f"stopped; {_resumed_by(store, output)}")
        raise


def _resumed_by(store: RunStore, output: Output) -> str:
    return f"resume with: {places.own_name()} {output.command} --resume {as_argument(store.folder)}"


def _exit(code: int) -> None:
    if code:
        raise typer.Exit(code)


def exit_code(reports: Sequence[Report], fail_on: Sequence[Verdict] = (), missing: Sequence[str] = ()) -> int:
    """3 for an aborted load; 1 if a subject of any part could not be run; else 3 if the last part missed what is asked.

    Also 1 if all starts of a duet are lost, unless its request was given up and others are compared.

    That is an objective, or a wanted verdict.

    Also 1 if a verdict may fail the command and one could not be given, or cells are `missing` that should have been
    compared: what was not compared has not passed. What was compared on servers that were not warm is inconclusive.
    Objectives are for the suite's own loads: a server whose capacity is sought gets as much load as it can take.
    """
    if any(_was_aborted(report) for report in reports):
        return exits.MISSED
    if reports[-1].run.same is not None:  # nothing was to be measured
        return exits.DONE
    if any(map(_could_not_run, reports)) or any(map(_compares_nothing, reports)):
        return exits.COULD_NOT_RUN
    last = reports[-1]
    missed = any(result.state != "met" for cell in _subjects(last) for result in cell.objectives)
    if missed or compare.unwanted(last.comparisons, fail_on):
        return exits.MISSED
    return (
        exits.COULD_NOT_RUN
        if fail_on and (missing or any(map(compare.was_not_judged, last.comparisons)))
        else exits.DONE
    )


def search_exit_code(report: LimitReport, fail_on: Sequence[Verdict] = ()) -> int:
    """1 if a search ended without an answer; 3 for an unwanted verdict; else 1 if a gate lacks a server to compare."""
    if any(cell.ended != "converged" for cell in report.cells):
        return exits.COULD_NOT_RUN
    if compare.unwanted(report.comparisons, fail_on):
        return exits.MISSED
    missing = not report.comparisons or any(skipped.cause != "suite" for skipped in report.skipped)
    return exits.COULD_NOT_RUN if fail_on and missing else exits.DONE


def _was_aborted(report: Report) -> bool:
    return bool(report.run.aborted_by) or any(trial.aborted_by for cell in _subjects(report) for trial in cell.trials)


def _subjects(report: Report) -> list[CellReport]:
    return [cell for cell in report.cells if cell.role == "subject"]


def _could_not_run(report: Report) -> bool:
    subjects = _subjects(report)
    # An invalid cell may show all of its objectives to be met or missed, or some of its numbers.
    answered = any(
        views.has_result(cell) or (cell.objectives and all(result.known for result in cell.objectives))
        for cell in subjects
    )
    return not answered or any(map(_never_answered, subjects))


def _compares_nothing(report: Report) -> bool:
    """Whether servers should have been compared in a duet, and none of its starts was measured."""
    return any(lost.all and not lost.given_up for lost in report.lost_starts)


def _never_answered(cell: CellReport) -> bool:
    return bool(cell.trials) and not any(trial.rate_per_s and not trial.failure for trial in cell.trials)
