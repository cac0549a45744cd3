"""The rounds of a run: what of its plan is left, until when there are further ones, and what ends them early."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from redline import findings
from redline.lazily import late
from redline.model import DuetRecording, Enough, Failure, Plan, Recording, Run
from redline.ports import Executor
from redline.running.judging import JudgedAhead
from redline.running.repeats import Repeats
from redline.running.trial import AnyRecording, Step, TrialListener
from redline.storage.runs import RunStore

if TYPE_CHECKING:
    from redline.analysis import precision, results, unanswered
else:  # what judges: the first load begins without it
    precision, results, unanswered = late("redline.analysis", "precision", "results", "unanswered")

Decide = Callable[[Run], Enough | None]
"""Whether the rounds so far are enough; asked after every round."""


def decide_by(growing: "Callable[[], results.GrowingRun]", listener: TrialListener, run: Run) -> Enough | None:
    """Return whether the rounds so far are enough; if not, tell the listener how precise they are."""
    auto = run.manifest.plan.suite.auto
    if auto is not None and auto.precision is None:
        return precision.enough(run)
    judged = growing().judge(run)
    end, known = precision.enough(run, lambda _run: judged), precision.precision(run, judged)
    if end is None and known is not None and auto is not None and known.rounds >= auto.at_least:
        listener.rounds_judged(known)
    return end


def run_trials(plan: Plan, store: RunStore, executor: Executor, listener: TrialListener, decide: Decide) -> None:
    """Run every trial and duet of the plan that has no recording yet, in the plan's order; store each when it ends.

    If steal disturbed them, they are repeated at the end of their round, a trial with its partner, within a budget. A
    suite that leaves the number of trials open gets rounds until they are enough. Then come the trials and duets with
    profilers. If the session ends early (an interrupt, a full disk), the recordings stay and a later session runs the
    rest.

    If servers are only compared, a failure ends the session once no duet of other servers is left without one, unless
    it is a wrong answer in the first round and others are right; so does a condition of `abort_when`, without an error.
    An interrupt keeps what a duet has measured so far; a later session makes both again. Raises KeyboardInterrupt,
    StoreError, and DriveError for that failure.
    """
    given_up = _run_rounds(plan, store, executor, listener, decide)
    cut = {made.position for made in store.sampled(plan) if made.is_interrupted}
    done = store.positions() - cut
    for recording in executor.execute([trial for trial in plan.profiled if trial.position not in done]):
        assert isinstance(recording, Recording), "no duet is profiled"
        cell = plan.cells[recording.cell_id]
        store.save(recording, cell, profiled=True)
        listener.trial_ended(recording, cell)
    for recording in executor.execute([duet for duet in plan.sampled if duet.position not in done and not given_up]):
        assert isinstance(recording, DuetRecording), "only duets are sampled"
        cells = tuple(plan.cells[cell_id] for cell_id in recording.cell_ids[:-1])
        store.save(recording, cells[0], profiled=True)
        listener.duet_ended(recording, cells)
        if recording.is_interrupted:
            raise KeyboardInterrupt


def _run_rounds(plan: Plan, store: RunStore, executor: Executor, listener: TrialListener, decide: Decide) -> bool:
    """Run the rounds. Returns whether they were given up, so that nothing else is measured."""
    kept, known, auto = _Kept(plan, store, listener), store.enough(), plan.suite.auto is not None
    done, repeats = kept.done, Repeats(plan, store)
    kept.tell()
    for round_, planned in groupby(plan.steps, key=lambda step: step.round):
        steps = tuple(planned)
        left = tuple(step for step in steps if step.position not in done)
        # Ask before each round, since a session may have been cut off before it asked; never within a round.
        if auto and known is None and left == steps:
            known = decide(kept.run)
            if known is not None:
                store.save_enough(known)
        if known is not None and round_ >= known.rounds:
            return False
        # A session may have been cut off after the last recording of a round, before it asked what to repeat.
        is_last = not done & {step.position for step in plan.steps if step.round > round_}
        if not left and is_last and (left := repeats.of_round(steps)):
            listener.repeated(left)
            kept.forget(left)
        while left:
            for recording in executor.execute(left):
                kept.keep(recording)
                if kept.is_given_up:
                    return True
            if left := repeats.of_round(steps):
                listener.repeated(left)
                kept.forget(left)
    return False


class _Kept:
    """The stored recordings of a run; all are kept in memory too if they decide the number of rounds."""

    def __init__(self, plan: Plan, store: RunStore, listener: TrialListener) -> None:
        self._plan, self._store, self._listener, self._manifest = plan, store, listener, store.manifest()
        self._decides = plan.suite.auto is not None
        self._ahead = JudgedAhead(plan, store) if plan.suite.alone and not self._decides else None
        self.done = store.positions()
        self._wrong: dict[tuple[str, ...], Failure] = {}
        self._failed: set[frozenset[str]] = set()
        self.is_given_up = False
        if not plan.suite.alone:
            self.done -= self._to_make_again(store.duets())
        stored: tuple[AnyRecording, ...] = (*store.recordings(), *store.duets()) if self._decides else ()
        self._made = {made.position: made for made in stored if made.position in self.done}

    def _to_make_again(self, duets: Sequence[DuetRecording]) -> frozenset[int]:
        """The positions of starts that a failure or an interrupt ended, without those of requests given up."""
        for duet in duets:
            if duet.round == 0 and duet.failure is not None and self._is_wrong_answer(duet.failure):
                self._wrong[duet.cell_ids[:-1]] = duet.failure
        if not self._others_are_right:  # their failure ended the session
            self._wrong.clear()
        return frozenset(
            duet.position
            for duet in duets
            if not duet.is_complete
            and not (
                duet.cell_ids[:-1] in self._wrong and duet.failure is not None and self._is_wrong_answer(duet.failure)
            )
        )

    def _is_wrong_answer(self, failure: Failure) -> bool:
        """Whether a request is given up for it; a suite that asks for the same answers gives none up."""
        return failure.stage == "verify" and failure.kind == "wrong_answer" and not self._plan.suite.same_answers

    @property
    def _others_are_right(self) -> bool:
        """Whether there are duets of requests that were not given up."""
        return bool({duet.cell_ids for duet in self._plan.duets} - self._wrong.keys())

    @property
    def run(self) -> Run:
        recordings = tuple(made for made in self._made.values() if isinstance(made, Recording))
        duets = tuple(made for made in self._made.values() if isinstance(made, DuetRecording))
        return Run(manifest=self._manifest, recordings=recordings, duets=duets)

    def tell(self) -> None:
        """Tell the listener how servers compare that are compared in duets alone."""
        if self._decides and not self._plan.suite.alone and self._made:
            self._listener.compared(self.run)

    def keep(self, made: AnyRecording) -> None:
        """Store a recording. Raises DriveError and KeyboardInterrupt if it ends the session."""
        cells = self._plan.cells
        if self._decides:
            self._made[made.position] = made
        if isinstance(made, Recording):
            self._store.save(made, cells[made.cell_id])
            self._listener.trial_ended(made, cells[made.cell_id])
            if self._ahead is not None:
                self._ahead.add(made, cells[made.cell_id])
            return
        compared = tuple(cells[cell_id] for cell_id in made.cell_ids[:-1])
        self._store.save(made, compared[0])
        self._listener.duet_ended(made, compared)
        if made.failure is not None and not self._plan.suite.alone:
            self._check_goes_on(made, made.failure)
        if made.is_interrupted:
            raise KeyboardInterrupt
        self.tell()
        # Further starts would load the same servers in the same way.
        self.is_given_up = bool(made.aborted_by) and not self._plan.suite.alone

    def _check_goes_on(self, made: DuetRecording, failure: Failure) -> None:
        """Raise DriveError unless the failure leaves others to be compared.

        A request that was answered wrongly from the first round on, such as a route that only one of two revisions has,
        does not keep others from being compared; a suite that asks for the same answers is refused for it. Nor does a
        server that fails keep duets of other servers from it.
        """
        if self._is_wrong_answer(failure):
            compared = made.cell_ids[:-1]
            if made.round == 0:
                self._wrong[compared] = failure
            if compared in self._wrong:
                if self._others_are_right:
                    return
                failure = next(iter(self._wrong.values()))
        self._failed.add(self._servers(made.cell_ids))
        if findings.of_engine(failure) or {self._servers(duet.cell_ids) for duet in self._plan.duets} <= self._failed:
            raise unanswered.start_failed(self.run, failure)

    def _servers(self, cell_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(self._plan.cells[cell_id].variant.slug for cell_id in cell_ids if cell_id in self._plan.cells)

    def forget(self, steps: Sequence[Step]) -> None:
        """Leave out trials and duets that are repeated."""
        for step in steps:
            self._made.pop(step.position, None)
