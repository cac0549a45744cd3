"""How often trials of a server are called different from each other, and from trials made slower by a known share.

`python -m tests.studies.same_server RUN SLUG`: the trials of a cell of a stored run, in the run's order, are taken in
pairs of neighbours, as if each pair were one round of two servers. Of these rounds as many as a run would have are
drawn. Either of a pair is the baseline by lot, and a share of the other's answers is removed. The more trials, the
better: `redline run suites/quickstart.yaml -s rust.hyper -m SimpleGet --trials 60 -d 1s` makes sixty.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from redline.model import Metric, Recording, Verdict
from redline.stats import Trial, decide, paired, sample_of
from redline.storage.runs import RunStore

DRAWS = 400
ROUNDS = (3, 5, 10)
SHARES = (0.0, 0.03, 0.05, 0.10)
THRESHOLD = 0.02
_Pair = tuple[Recording, Recording]


def main() -> None:
    """Print how much the trials differ, and the table of docs/concepts/statistics.md."""
    trials = _trials(Path(sys.argv[1]), sys.argv[2])
    rates = np.array([one.traffic.rate_per_s for one in trials if one.traffic])
    sys.stdout.write(f"{len(rates)} trials, coefficient of variation {rates.std(ddof=1) / rates.mean():.1%}\n\n")
    rounds = list(zip(trials[::2], trials[1::2], strict=False))
    rng = np.random.default_rng(1)
    lines = ["| trials | slower by |" + " called different |", "|---|---|---|"]
    for count in ROUNDS:
        for share in SHARES:
            found = np.mean([_different(_drawn(rounds, count, rng), share) for _ in range(DRAWS)])
            lines.append(f"| {count} | {share:.0%} | {found:.0%} |")
    sys.stdout.write("\n".join(lines) + "\n")


def _trials(folder: Path, slug: str) -> list[Recording]:
    run = RunStore(folder).run()
    ids = [cell_id for cell_id, cell in run.manifest.plan.cells.items() if cell.slug == slug]
    if not ids:
        sys.exit(f"no cell {slug} in {folder}")
    own = [one for one in run.recordings if one.cell_id in ids and one.traffic]
    return sorted(own, key=lambda one: one.round)


def _drawn(rounds: Sequence[_Pair], count: int, rng: np.random.Generator) -> list[_Pair]:
    places = rng.choice(len(rounds), count, replace=False)
    swapped = rng.random() < 0.5
    return [rounds[place][::-1] if swapped else rounds[place] for place in places]


def _different(rounds: Sequence[_Pair], share: float) -> bool:
    ours = sample_of([Trial(_slower(one, share)).numbers for one, _ in rounds], Metric.THROUGHPUT)
    theirs = sample_of([Trial(other).numbers for _, other in rounds], Metric.THROUGHPUT)
    found = paired(ours, theirs)
    assert found is not None, "every trial answered something"
    return decide(found.ratio, THRESHOLD, higher_is_better=Metric.THROUGHPUT.higher_is_better).verdict in (
        Verdict.FASTER,
        Verdict.SLOWER,
    )


def _slower(recording: Recording, share: float) -> Recording:
    assert recording.traffic is not None, "only trials with traffic are taken"
    counts = recording.traffic.counts
    fewer = counts.model_copy(update={"completed": round(counts.completed * (1 - share))})
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"counts": fewer})})


if __name__ == "__main__":
    main()
