"""The answer of a comparison by `redline ab`, from its recordings, and how it is printed and stored."""

from collections.abc import Sequence

from redline.analysis.ab import judge, nothing_due
from redline.cli import places
from redline.cli.show import show
from redline.cli.streams import write_document
from redline.errors import DriveError, StoreError
from redline.findings.starts import failing
from redline.model import DuetRecording, Failure
from redline.model.duet import AbPlan, AbReport
from redline.report.format import label
from redline.report.render import AB_RENDERERS
from redline.report.sections.ab import ab_sections
from redline.running.duet import is_over
from redline.storage.comparisons import REPORT, ComparisonStore

_LOG_LINES = 10
_BY_HAND = "start the command by hand, with a port in place of {port}, and use `redline load` on it"
"""The hint for a command that ended under load: its log is in a folder that ends with the comparison."""


def judged(plan: AbPlan, recordings: Sequence[DuetRecording]) -> AbReport | None:
    """The answer so far; None where too little was measured. Raises DriveError where a server failed."""
    if recordings and (failure := recordings[-1].failure) is not None:
        raise failure_error(failure, (plan.a, plan.b), from_project=plan.checkout is not None, once=plan.duet.once)
    if (failed := failing(recordings, ("A", "B"))) is not None:
        raise DriveError(failed, hint="`redline load` on that server shows when they fail")
    cell, cores = plan.duet.cells[0], len(plan.environment.server_cpus)
    closed, detects = cell.load.saturates, cell.warmup_detect
    report = judge((plan.a, plan.b), plan.metric, recordings, closed=closed, cores=cores, detects=detects)
    return report and report.model_copy(update={"interrupted": not is_over(plan.duet, recordings)})


def too_little(plan: AbPlan, recordings: Sequence[DuetRecording]) -> DriveError:
    """Why there is no answer though nothing failed."""
    if idle := nothing_due(recordings):
        return DriveError(idle, hint="measure for longer (--for), or load them more (--load)")
    said = f"nothing can be said of {label(plan.metric)}: too little was measured"
    return DriveError(said, hint="give --for more time")


def read_report(store: ComparisonStore) -> AbReport:
    """The answer of a stored comparison. Raises StoreError where there is none yet, and DriveError as `judged`."""
    report = judged(store.plan(), store.duets())
    if report is None:
        hint = f"resume it with: {places.own_name()} ab --resume {store.folder}"
        raise StoreError(f"{store.folder} holds a comparison of which too little was measured", hint=hint)
    return report


def failure_error(failure: Failure, names: tuple[str, str], *, from_project: bool, once: bool) -> DriveError:
    """With the last lines of a log, for whose file nobody needs to look then; the message has one of them.

    `once`: the servers run already.
    """
    lines = failure.log_tail.splitlines()[-_LOG_LINES:]
    for end in (-1, 0):
        if lines and failure.message.endswith(lines[end].strip()):
            lines.pop(end)
    said = "".join(f"\n    {text}" for text in lines)
    if failure.kind == "engine":
        return DriveError(failure.message + said, hint=failure.hint)
    hint = _BY_HAND if failure.stage == "load" and not once else failure.hint
    if from_project and failure.stage in ("launch", "load"):
        hint = f"A is {names[0]}, B {names[1]}; {hint}"
    return DriveError(failure.message + said, hint=hint)


def print_report(report: AbReport, form: str | None) -> None:
    """Print it on stdout: in one of the formats of `AB_RENDERERS`, or for people."""
    if form is None:
        show(ab_sections(report))
        return
    write_document(AB_RENDERERS[form](report))


def write_views(store: ComparisonStore, report: AbReport) -> None:
    """Write what can be looked at. Raises StoreError."""
    store.write(REPORT, AB_RENDERERS["json"](report))
    store.write("results.md", AB_RENDERERS["md"](report))
