"""`redline profile`: `redline run` with a profiler."""

from redline.cli.command_line import ProfileFlags, RunFlags
from redline.cli.commands import run

_DEFAULT = "cpu"


def execute(flags: ProfileFlags) -> None:
    """Run a suite or redline.yaml, with a CPU profile of each cell unless others are named."""
    values = {name: getattr(flags, name) for name in flags.declared()}
    if flags.resume is None and not flags.profile:
        values["profile"] = [_DEFAULT]
    run.execute(RunFlags(**values))
