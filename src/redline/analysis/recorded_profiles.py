"""Every profile that a run recorded, for other programs: the stacks of a cell's profiled trials together."""

from collections.abc import Iterator
from dataclasses import dataclass

from redline.analysis.distributions import cell_names
from redline.model import ProfileFacts, ProfileUnit, Run, Stacks


@dataclass(frozen=True)
class RecordedProfile:
    """The stacks of a cell by kind; `name` is such as `rust.hyper.SimpleGet.saturate.cpu`."""

    name: str
    unit: ProfileUnit
    stacks: Stacks


def recorded_profiles(run: Run) -> Iterator[RecordedProfile]:
    """The profiles that have stacks, in the order in which they were first made. Raises StoreError."""
    names, files = cell_names(run.manifest.plan), dict[tuple[str, ProfileUnit], list[str]]()
    for recording in run.profiled:
        facts = recording.profile
        if facts is not None and facts.stacks is not None and facts.samples:
            name = f"{names[recording.cell_id]}.{_kind(facts)}"
            files.setdefault((name, facts.unit), []).append(facts.stacks)
    for (name, unit), stacks in files.items():
        if run.profiles is not None:
            yield RecordedProfile(name, unit, Stacks.merged(map(run.profiles.stacks, stacks)))


def _kind(facts: ProfileFacts) -> str:
    return "engine" if facts.subject == "engine" else facts.kind


def collapsed(stacks: Stacks) -> bytes:
    """A line per stack: frames with `;` between them, the outermost first, and the weight. All threads together."""
    weights: dict[str, int] = {}
    for stack, weight in stacks.weights.items():
        if stack.frames:
            frames = ";".join(stack.frames)
            weights[frames] = weights.get(frames, 0) + weight
    return "".join(f"{frames} {weight}\n" for frames, weight in sorted(weights.items())).encode()
