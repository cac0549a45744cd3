"""`redline bisect GOOD BAD`: the commit that made a metric worse, where every answer is uncertain."""

import os
from contextlib import ExitStack
from pathlib import Path, PurePath

import typer
from rich.console import Console

from redline.asking import places
from redline.asking.naming import naming
from redline.asking.opening import source_of
from redline.asking.origins import find_project, read_project_file
from redline.cli import exits, question
from redline.cli.asks import bisect_ask
from redline.cli.command_line import WHILE_IT_RUNS, BisectFlags
from redline.cli.commands.ab import comparison_suite
from redline.cli.flags import command_line, refuse
from redline.cli.progress import progress_console
from redline.cli.quiet import wait_until_quiet
from redline.cli.session_view import SessionView
from redline.cli.show import insist, show, write_json
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.document.blocks import Section
from redline.errors import RedlineError, UsageError
from redline.history.bisecting import LITTLE
from redline.history.bisection_sections import chances, change, likelier_answers, sections
from redline.launching.history import CommitHistory, history_between
from redline.launching.revisions import Repository
from redline.model import Metric
from redline.model.bisection import BisectedCommit, Bisection, PrintedNumber
from redline.quantities import parse_duration
from redline.report.why import why_sections
from redline.running.assembly import Workplace
from redline.running.bisecting import BisectStore, CommitMeasurement, DuetOfCommit, search
from redline.running.manifests import Source
from redline.running.measuring_commands import NumberOfCommit
from redline.running.session import refuse_other_machine
from redline.wording import as_argument

_WITH_RESUME = {"resume", "why", "wait_quiet", "json", *WHILE_IT_RUNS} - {"open"}
_METRICS = {"cpu": Metric.CPU_PER_REQUEST}
_WITH_MEASURE = {
    *("good", "bad", "paths", "first_parent", "measure", "higher_is_better", "lasts", "output", "wait_quiet", "json"),
    *(WHILE_IT_RUNS - {"open"}),
}


class BisectView:
    """Prints a line for each commit that was measured."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begins(self, told: Bisection) -> None:
        """Say among how many commits the search is."""
        count = len(told.commits)
        self._print(f"{count} commit{'s' if count > 1 else ''} between {told.oldest} and {told.newest}")

    def measuring(self, commit: BisectedCommit, told: Bisection) -> None:
        """Say which commit is measured."""
        self._print(f"[{len(told.order) + 1}] {commit.name}", "bold")

    def measured(self, commit: BisectedCommit, told: Bisection) -> None:
        """Say how it compares, and which commit or other answer is the most probable."""
        if lacking := commit.broken or commit.failed:
            self._print(f"    {'skipped' if commit.broken else 'not measured'}: {lacking}", "yellow")
            return
        best = max(told.commits, key=lambda one: one.probability)
        level = "not known" if commit.level is None else change(commit.level)
        known = likelier_answers(told) or [f"most likely {best.commit[:9]}: {chances(best.probability)}"]
        self._print(f"    {told.metric} {level}; {'; '.join(known)}")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def execute(flags: BisectFlags) -> None:
    """Find the commit between a good revision and a bad one, or go on with a search that stopped."""
    console = progress_console(flags)
    if flags.open:
        raise UsageError("--open: a bisection has no page", hint="leave it out; each of its steps/ has report.html")
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of("redline bisect", console, flags.wait, alone=flags.alone)
        workplace = Workplace(None, stack, places.of_suite, on_usage, turn)
        view = SessionView(console, meter)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            store = BisectStore(flags.resume)
            told = store.read()
            measure = _resumed(store, told, workplace, view, why=flags.why)
        else:
            store, told, measure = _begun(flags, workplace, view, console)
        if flags.wait_quiet:
            wait_until_quiet(console)
        lines = BisectView(console)
        lines.begins(told)
        told = search(store, told, measure, lines)
        resumed_by = "nothing was measured"
        if store.exists:
            resumed_by = f"resume with: {places.own_name()} bisect --resume {as_argument(store.folder)}"
        try:
            question.settle()
        except KeyboardInterrupt:
            insist(console, f"stopped; {resumed_by}")
            raise
        why: tuple[Section, ...] = ()
        stopped = False
        if flags.why:
            try:
                told, why = _account(told, store, measure, console)
            except KeyboardInterrupt:
                stopped = True
        _show(told, store, flags, console, resumed_by, why)
        if stopped:
            insist(console, f"no account: interrupted; {resumed_by} --why")
            raise typer.Exit(exits.INTERRUPTED)


def _account(
    told: Bisection, store: BisectStore, measure: CommitMeasurement, console: Console
) -> tuple[Bisection, tuple[Section, ...]]:
    """The search with the account of the commit that was found, and its sections; or say why there is none."""
    if told.ending != "found" or not isinstance(measure, DuetOfCommit):
        return told, ()
    if told.parent is None:
        lacking = "several commits remain" if len(told.culprits) > 1 else "the commit has no parent"
    else:
        console.print(f"why: {told.culprits[0][:9]} against its parent", style="bold", highlight=False)
        try:
            report = measure.account(told)
            told = told.accounted(report.why)
            store.write(told)
            return told, tuple(why_sections(report))
        except RedlineError as error:
            lacking = error.message
    console.print(f"no account: {lacking}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    return told, ()


def _show(
    told: Bisection,
    store: BisectStore,
    flags: BisectFlags,
    console: Console,
    resumed_by: str,
    why: tuple[Section, ...],
) -> None:
    """Print what is known, and exit with the code of it."""
    if flags.json:
        write_json(told)
    else:
        show((*sections(told), *why))
        if store.exists:
            text = f"as a log of git bisect: {store.folder / 'bisect.log'}"
            console.print(text, soft_wrap=True, highlight=False, markup=False)
    if why:
        console.print(f"why: {store.why}", soft_wrap=True, highlight=False, markup=False)
    if told.ending == "interrupted":
        insist(console, f"interrupted; {resumed_by}")
        raise typer.Exit(exits.INTERRUPTED)
    if told.ending != "found":
        raise typer.Exit(exits.COULD_NOT_RUN)


def _begun(
    flags: BisectFlags, workplace: Workplace, view: SessionView, console: Console
) -> tuple[BisectStore, Bisection, CommitMeasurement]:
    """A new search in its directory, which is there once something was measured. Raises RedlineError."""
    if flags.good is None or flags.bad is None:
        hint = "give a good revision and a bad one: redline bisect v1.2 HEAD"
        raise UsageError("there are no two revisions to search between", hint=hint)
    if flags.higher_is_better and flags.measure is None:
        raise UsageError("--higher-is-better is about --measure", hint="leave it out: metrics know their direction")
    here = Path.cwd()
    repository = Repository.around(here)
    history = history_between(
        repository, flags.good, flags.bad, _in_repository(flags.paths, repository), first_parent=flags.first_parent
    )
    store = BisectStore(flags.output or places.new_run("bisect"))
    told = _new_bisection(flags, history, repository)
    if flags.measure is not None:
        refuse(flags.given(but=_WITH_MEASURE), "--measure loads no server, and takes no")
        store.check_free()
        workplace.take_turn()
        told = told.by_number(_printed(flags, flags.measure, repository, here))
        return store, told, _by_number(told, workplace.stack, view)
    ask = bisect_ask(flags, told.oldest.name, told.newest.name)
    suite, text, _ = comparison_suite(ask, console)
    store.check_free()
    workplace.take_turn()
    source = source_of(ask, command_line, text, "comparison")
    bench, suite, _ = workplace.prepare(Path(source.file), suite)
    return store, told, DuetOfCommit(store, suite.without_why(), bench, source, view)


def _resumed(
    store: BisectStore, told: Bisection, workplace: Workplace, view: SessionView, *, why: bool
) -> CommitMeasurement:
    """What goes on to measure a stored search. Raises RedlineError."""
    workplace.take_turn()
    if told.printed is not None:
        if why:
            raise UsageError("--why: this search runs a command, and loads no server", hint="leave it out")
        return _by_number(told, workplace.stack, view)
    begun = store.first()
    suite = begun.plan.suite.accounting(told.oldest, told.newest) if why else begun.plan.suite
    bench = workplace.bench_for(begun.with_plan(begun.plan.of_suite(suite)))
    refuse_other_machine(begun.environment, bench.environment, "this bisection")
    source = Source(told.command, begun.suite_file, begun.suite_text, begun.kind)
    return DuetOfCommit(store, begun.plan.suite, bench, source, view)


def _by_number(told: Bisection, stack: ExitStack, view: SessionView) -> NumberOfCommit:
    assert told.printed is not None, "it was asked for"
    return NumberOfCommit(Repository(Path(told.repository)), told.oldest, told.printed, stack, view.building)


def _printed(flags: BisectFlags, command: str, repository: Repository, here: Path) -> PrintedNumber:
    """The command, and what builds a checkout for it: that of redline.yaml, if there is one. Raises UsageError."""
    file = find_project(here)
    build = None if file is None else read_project_file(file).build
    folder, top = (here if file is None else file.parent).resolve(), repository.folder.resolve()
    if not folder.is_relative_to(top):
        raise UsageError(f"{file} is not in the repository {top}", hint="put it, or a link to it, into the repository")
    with naming("--for"):
        budget_ns = parse_duration(flags.lasts)
    below = str(folder.relative_to(top))
    return PrintedNumber(command=command, build=build, below=below, budget_ns=budget_ns)


def _new_bisection(flags: BisectFlags, history: CommitHistory, repository: Repository) -> Bisection:
    """A search of which nothing is measured yet."""
    metric = _METRICS.get(flags.metric) or Metric(flags.metric)
    good, bad = (history.newest, history.oldest) if history.is_fix else (history.oldest, history.newest)
    return Bisection(
        command=command_line(),
        repository=str(repository.folder),
        good=good,
        bad=bad,
        is_fix=history.is_fix,
        first_parent=flags.first_parent,
        metric="the number" if flags.measure is not None else metric.words,
        higher_is_better=flags.higher_is_better or (flags.measure is None and metric.higher_is_better),
        commits=tuple(
            BisectedCommit(
                commit=commit.commit,
                subject=commit.subject,
                parents=commit.parents,
                weight=1.0 if commit.touches_code else LITTLE,
                comparable=commit.has_oldest,
            )
            for commit in history.commits
        ),
    )


def _in_repository(paths: list[str], repository: Repository) -> list[str]:
    """Paths, which count from this folder, as git reads them in the topmost folder of the repository."""
    own = repository.folder.resolve()
    return [str(PurePath(os.path.relpath(Path.cwd().resolve() / path, own))) for path in paths]
