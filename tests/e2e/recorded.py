"""What a load measured, as it was recorded: times too, which a busy machine may keep out of a result."""

from pathlib import Path

from redline.model import Histogram, Recording, RequestTraffic, Traffic
from redline.storage.runs import RunStore
from tests.e2e.conftest import Done, Redline

FOLDER = "recorded"


def loaded(redline: Redline, *args: str | Path) -> tuple[Done, Traffic]:
    """`redline load` of these as JSON, and its traffic; a command has to be given without -o."""
    nth = sum(1 for _ in redline.folder.glob(f"{FOLDER}-*"))
    folder = redline.folder / f"{FOLDER}-{nth}"
    done = redline("load", *args, "-o", folder, "--json").measured()
    (recording,) = RunStore(folder).run().recordings
    return done, traffic_of(recording)


def traffic_of(recording: Recording) -> Traffic:
    """The traffic of a trial that was made."""
    assert recording.traffic is not None, recording.failure
    return recording.traffic


def first_byte_of(request: RequestTraffic) -> Histogram:
    """The times to the first byte, which are recorded where they are not those of the last."""
    assert request.first_byte is not None
    return request.first_byte


def answered(folder: Path) -> list[str]:
    """The server of every trial of a run that had right answers, in the order of the trials."""
    run = RunStore(folder).run()
    cells = run.manifest.plan.cells
    return [
        cells[one.cell_id].variant.slug
        for one in run.recordings
        if one.traffic is not None and one.failure is None and one.traffic.counts.outcomes.ok
    ]
