"""What watches a trial."""

from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.ports import Probe


def process_probes() -> tuple[Probe, ...]:
    """The probes that every trial is watched with; new ones for each."""
    return (ProcessTreeProbe(),)
