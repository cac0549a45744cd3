"""The search on a cell as it was stored: what cannot be judged of it is left out, and says why. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from redline.analysis.impossible import IMPOSSIBLE, holds_what_cannot_be
from redline.limits.search_state import SearchState, search_state
from redline.model import Cell, Manifest
from redline.model.limits import CellLimit
from redline.model.search import ProbeRecording

ProbeRecordings = tuple[ProbeRecording, ...]
_MOST_UNFIT = 5
"""Each of them takes a few judgements of the whole search to find."""


@dataclass(frozen=True)
class JudgedSearch:
    """The search on a cell, its result, and why recordings of it are not used.

    `state` is None if not even what was asked can be used. `ended`: nothing is left to do for this cell.
    """

    state: SearchState | None
    limit: CellLimit
    ended: bool = True
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class _SearchJudge:
    manifest: Manifest
    cell: Cell
    before: Sequence[SearchState]

    def judged(self, made: ProbeRecordings) -> JudgedSearch:
        """What these recordings say. Raises one of `IMPOSSIBLE` if they hold what cannot be."""
        state = search_state(self.manifest, self.cell, made, self.before)
        return JudgedSearch(state, state.limit(), state.ended)

    def why_not(self, made: ProbeRecordings) -> str:
        """Why these recordings cannot be judged; empty if they can."""
        try:
            self.judged(made)
        except IMPOSSIBLE as error:
            return holds_what_cannot_be(error)
        return ""

    def usable(self, made: ProbeRecordings) -> tuple[ProbeRecordings, tuple[str, ...]]:
        """The recordings that can be judged together, and why the others cannot.

        First those are left out that cannot even be taken in by themselves, then each that does not fit those before
        it, and after `_MOST_UNFIT` of them all that follow.
        """
        left, said = list[ProbeRecording](), list[str]()
        for one in made:
            if why := self._why_not_taken_in(one):
                said.append(f"{one.stored_as(self.cell)} {why}")
            else:
                left.append(one)
        for unfit in range(_MOST_UNFIT):
            first, why = self._first_unfit(tuple(left))
            if not why:
                break
            is_last = unfit == _MOST_UNFIT - 1
            rest = ", and what follows it is not used" if is_last else ""
            said.append(f"{left[first].stored_as(self.cell)} {why}{rest}")
            del left[first : None if is_last else first + 1]
        return tuple(left), tuple(said)

    def _why_not_taken_in(self, one: ProbeRecording) -> str:
        try:
            search_state(self.manifest, self.cell, (one,), self.before)
        except IMPOSSIBLE as error:
            return holds_what_cannot_be(error)
        return ""

    def _first_unfit(self, made: ProbeRecordings) -> tuple[int, str]:
        """The place of a recording with which those before it cannot be judged any more, and why; empty for none."""
        why, fit, unfit = self.why_not(made), 0, len(made)
        while why and unfit - fit > 1:
            middle = (fit + unfit) // 2
            if why_not := self.why_not(made[:middle]):
                unfit, why = middle, why_not
            else:
                fit = middle
        return fit, why


def judged_search(
    manifest: Manifest, cell: Cell, made: Iterable[ProbeRecording], before: Sequence[SearchState] = ()
) -> JudgedSearch:
    """Judge the recordings of a cell; `before` as for `search_state`. A result comes out, whatever the disk holds."""
    judge, recordings = _SearchJudge(manifest, cell, before), tuple(made)
    try:
        return judge.judged(recordings)
    except IMPOSSIBLE:
        pass
    if why := judge.why_not(()):
        return JudgedSearch(None, _unknown(cell, why), unused=(f"what was asked of {cell.slug} {why}",))
    usable, unused = judge.usable(recordings)
    return replace(judge.judged(usable), unused=unused)


def _unknown(cell: Cell, why: str) -> CellLimit:
    """A cell of which nothing is known."""
    return CellLimit(
        slug=cell.slug,
        server=cell.variant.slug,
        scenario=cell.scenario.name,
        load=cell.load.name,
        ended="broken",
        reason=f"what was asked {why}",
        confirmed=False,
        limits=(),
        probes=(),
    )
