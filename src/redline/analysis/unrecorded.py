"""What a version before 0.1.0 did not record of a run: a report of it cannot say these things."""

from collections.abc import Iterator

from redline.model import Run
from redline.model.recording import Recording
from redline.model.run import Manifest


def unrecorded(run: Run) -> tuple[str, ...]:
    """What the report of a run cannot say; nothing for one of today's form."""
    if not run.manifest.earlier:
        return ()
    duet = next((duet for duet in run.duets if duet.traffic), None)
    counted = (
        duet is None
        or duet.traffic is None
        or any(part.bytes_received is not None for block in duet.traffic.blocks for part in block.slices)
    )
    lacks = [] if counted else ["bytes received in duets"]
    return (*_of_manifest(run.manifest), *_of_recording(next(iter(run.recordings), None)), *lacks)


def unrecorded_of_search(manifest: Manifest, first: Recording | None) -> tuple[str, ...]:
    """What the report of a search cannot say, by its manifest and a recording of it."""
    return (*_of_manifest(manifest), *_of_recording(first)) if manifest.earlier else ()


def _of_manifest(manifest: Manifest) -> Iterator[str]:
    if not manifest.environment.engine_sha256:
        yield "which build of the engine measured"


def _of_recording(recording: Recording | None) -> Iterator[str]:
    if recording is None:
        return
    if recording.log_bytes is None and recording.server is not None:
        yield "how much servers logged"
    if not recording.fixed_work:
        yield "how fast the cores were"
    if recording.traffic is not None and recording.traffic.clocks is None:
        yield "the CPU time of servers at both ends of a measurement"
