"""`redline history`: every cell of many runs, from run to run, and where it changed."""

import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import typer
from rich.text import Text

from redline.analysis.other_results import lines_of
from redline.asking.asks import split
from redline.asking.naming import at_least_one
from redline.cli import exits
from redline.cli.command_line import HistoryFlags
from redline.cli.flags import form_of
from redline.cli.show import OneLine, Terminal, show, write_json
from redline.cli.streams import write_document
from redline.document.blocks import Medium
from redline.entry_points import extra
from redline.errors import RedlineError, UsageError
from redline.files import write_atomically
from redline.findings import merged_by_text
from redline.history.changes import FEWEST_RUNS
from redline.history.over_runs import (
    SeenRun,
    build_history,
    overlooked,
    regressions,
    silent,
    unreported,
    with_reported,
)
from redline.history.sections import OUTLINE
from redline.model import Cell, Grade
from redline.model.history import History, OtherLine, Reported
from redline.render import history_page, markdown
from redline.running.histories import see_stored
from redline.storage.archive import Archive, open_archive
from redline.storage.reading import stored_in
from redline.wording import as_argument

_REPORTED = "reported.json"


def execute(flags: HistoryFlags) -> None:
    """Follow every cell across the runs of a directory, and show where it became faster or slower.

    Results of other tools, which are files, are shown beside the history.
    """
    form = form_of(flags)
    if flags.recent is not None:
        at_least_one("recent", flags.recent)
        if not flags.fail_on:
            hint = "say what fails, too: --fail-on regression"
            raise UsageError("--recent says which regressions fail, and none does", hint=hint)
    files = [path for path in flags.paths if path.is_file()]
    folders = [path for path in flags.paths if path not in files]
    if not folders and (flags.servers or flags.scenarios):
        raise UsageError("-s and -m select cells of runs, and there are only files", hint="leave them out")
    if len(folders) > 1:
        hint = "name the folder above them: runs are read at any depth"
        raise UsageError(f"{folders[0]} and {folders[1]} are two folders of runs", hint=hint)
    others = lines_of([result for file in files for result in extra("results", str(file))(file)])
    history = _history(folders[0], flags, others) if folders else build_history("", (), others=others)
    if form == "json":
        write_json(history)
    elif form == "html":
        write_document(history_page(history))
    elif form == "md":
        write_document(markdown.render(OUTLINE.text(history, Medium.MARKDOWN)))
    else:
        show(OUTLINE.text(history, Medium.TERMINAL))
    _tell_left_out(history)
    if flags.fail_on:
        gate(history, flags.recent, once=flags.fail_on == "new-regression")


def _history(folder: Path, flags: HistoryFlags, others: tuple[OtherLine, ...]) -> History:
    """Return the history of the runs below a folder. Raises UsageError if `-s` and `-m` leave no cell."""
    wanted = _wanted(split(flags.servers), split(flags.scenarios))
    history = _read(folder, open_archive(folder), wanted, others)
    if (flags.servers or flags.scenarios) and history.runs and not history.cells:
        hint = "leave out -s and -m to see all that there are"
        raise UsageError(f"no cell of the runs below {history.folder} matches", hint=hint)
    return history


def gate(history: History, recent: int | None, *, once: bool = False) -> None:
    """Exit with 3 for a regression that persists, and with 1 if the last run shows nothing or cannot be read.

    Too few runs are no failure, since every history begins so; stderr then says that they are not judged. `once`: a
    regression that this exit was for before is none, and `reported.json` in the folder remembers them.
    """
    worse = regressions(history, recent)
    reported = _reported(history.folder) if once and worse else Reported()
    news = unreported(worse, history, reported) if once else worse
    for followed in worse:
        since = history.runs[followed.regressed_since or 0].name
        kind = "regression" if followed in news else "note: reported before"
        sys.stderr.write(f"{kind}: {followed.name}: {followed.metric}, since {since}\n")
    if news:
        if once:
            _remember(history.folder, with_reported(news, history, reported))
        raise typer.Exit(exits.MISSED)
    if not history.folder:
        raise RedlineError(
            "nothing could be judged: a result of another tool is a single run, without an interval",
            hint="name the folder of Redline's runs, or leave out --fail-on",
        )
    if not history.runs:
        raise RedlineError(
            f"nothing could be judged: no run below {history.folder}", hint="name the folder of the runs"
        )
    unread = overlooked(history)
    if unread:
        raise RedlineError(
            f"the newest run may not have been judged: {'; '.join(f'{run.folder}: {run.reason}' for run in unread)}",
            hint="mend it, go on with it (redline run --resume DIR), or move it away, and ask again",
        )
    missing = silent(history)
    if missing:
        said = merged_by_text(sorted((series.name, series.points[-1].missing) for series in missing))
        last = history.runs[max(series.points[-1].run for series in missing)]
        raise RedlineError(
            f"the last run does not show everything: {last.name}: {'; '.join(said)}",
            hint=f"see why: redline report {as_argument(last.folder)}",
        )
    newest = history.runs[-1].era
    runs = sum(run.era == newest for run in history.runs)
    if runs < FEWEST_RUNS:
        sys.stderr.write(f"note: nothing is judged yet: the era has {runs} of the {FEWEST_RUNS} runs that it takes\n")


def _reported(folder: str) -> Reported:
    """The regressions that were reported of the runs in this folder."""
    file, without_it = Path(folder) / _REPORTED, "remove it: then all regressions are new"
    try:
        return stored_in(file.read_bytes(), file, Reported, without_it)
    except FileNotFoundError:
        return Reported()
    except OSError as error:
        raise RedlineError(f"{file} cannot be read: {error.strerror}", hint=without_it) from error


def _remember(folder: str, reported: Reported) -> None:
    file = Path(folder) / _REPORTED
    try:
        write_atomically(file, reported.model_dump_json(indent=2).encode() + b"\n")
    except OSError as error:
        hint = "--fail-on regression remembers nothing"
        raise RedlineError(f"{file} cannot be written: {error.strerror}", hint=hint) from error


def _wanted(servers: tuple[str, ...], scenarios: tuple[str, ...]) -> Callable[[Cell], bool]:
    def wanted(cell: Cell) -> bool:
        names = (cell.variant.slug, cell.variant.entry.name)
        return _any(names, servers) and _any((cell.scenario.name,), scenarios)

    return wanted


def _any(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for name in names for glob in globs)


def _read(folder: Path, archive: Archive, wanted: Callable[[Cell], bool], others: tuple[OtherLine, ...]) -> History:
    """Return the history of all readable runs; unreadable runs are left out, with the reason."""
    seen: list[SeenRun] = []
    aside = list(archive.left_out)
    with OneLine(Terminal(stderr=True)) as line:
        for number, store in enumerate(archive.runs, start=1):
            line.say(Text(f"reading run {number} of {len(archive.runs)}: {store.folder}"))
            shown = see_stored(store, wanted)
            if isinstance(shown, SeenRun):
                seen.append(shown)
            else:
                aside.append(shown)
        line.say(Text("looking for changes"))
        return build_history(str(folder), seen, aside, archive.foreign, others)


def _tell_left_out(history: History) -> None:
    """Print on stderr what the history leaves out: a line for every run, and a line for all foreign directories."""
    for run in history.left_out:
        grade = Grade.NOTE if run.going else Grade.WARN
        sys.stderr.write(f"{grade}: left out: {run.folder}: {run.reason}\n")
    if history.foreign:
        sys.stderr.write(f"note: no run is in {', '.join(history.foreign)}\n")
