"""Builds what a run needs, and shows it."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from rich.console import Console

from redline.cli.build_view import BuildView
from redline.errors import BuildError, RedlineError
from redline.model import Environment, Run, ServerFacts, Suite, Variant
from redline.ports import BuildOutcome, Launcher

_MUST_BE_THE_SAME = ("engine_sha256", "hostname", "cores", "server_cpus", "engine_cpus")


@dataclass(frozen=True)
class Built:
    """By variant slug: the content hash of what was built and what runs it, or why it could not be."""

    hashes: dict[str, str]
    unavailable: dict[str, str]
    runtimes: dict[str, str] = field(default_factory=dict)


def build_all(suite: Suite, launcher: Launcher, console: Console, only: AbstractSet[str] | None = None) -> Built:
    """Build every variant of the suite, or `only` those slugs. A failure is kept as the reason, not raised."""
    variants = [variant for variant in _variants(suite) if only is None or variant.slug in only]
    with BuildView(console) as view:
        outcome = launcher.build(variants, view)
    print_failures(outcome, console)
    unavailable = {slug: error.problems[0].message for slug, error in outcome.failures.items()}
    return Built(outcome.hashes, unavailable, outcome.runtimes)


def print_failures(outcome: BuildOutcome, console: Console) -> None:
    """Why what could not be built could not: once for all that failed together."""
    together: dict[BuildError, list[str]] = {}
    for name, error in outcome.failures.items():
        together.setdefault(error, []).append(name)
    for error, names in together.items():
        console.print(f"cannot build {', '.join(names)}: {error}", style="yellow", markup=False, highlight=False)


def refuse_changed(built: Built, run: Run, environment: Environment) -> None:
    """Raise RedlineError when going on would mix what cannot be mixed: other servers or JDKs, another engine."""
    hint = "start a new run: trials of one run must be of one build"
    for slug, reason in built.unavailable.items():
        raise RedlineError(f"{slug} cannot be built any more: {reason}", hint=hint)
    for recording in run.recordings:
        slug = run.manifest.plan.cells[recording.cell_id].variant.slug
        if recording.server is not None:
            _refuse_another(slug, recording.server, built, hint)
    was = run.manifest.environment
    for name in _MUST_BE_THE_SAME:
        before, now = getattr(was, name), getattr(environment, name)
        if before != now:
            told = f"another {name.replace('_', ' ')}: {before}, now {now}"
            raise RedlineError(f"this run was begun with {told}", hint=hint)


def _refuse_another(slug: str, was: ServerFacts, built: Built, hint: str) -> None:
    if built.hashes.get(slug) != was.build:
        raise RedlineError(f"{slug} is not what it was when this run began", hint=hint)
    before, now = was.runtime_version, built.runtimes.get(slug)
    # The hash of a build knows nothing of the JDK that its server is started with.
    if now is not None and now != before:
        message = f"{slug} ran on {before or 'nothing known'}; now it would run on {now or 'nothing known'}"
        raise RedlineError(message, hint=f"put {before or 'what it ran on'} back, or {hint}")


def _variants(suite: Suite) -> tuple[Variant, ...]:
    return suite.variants if suite.ceiling is None else (*suite.variants, suite.ceiling)
