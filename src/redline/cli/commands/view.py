"""`redline view`: the runs of folders in a browser on this machine."""

import sys

from redline.asking.places import RUNS
from redline.cli import exits, interrupts
from redline.cli.browser import open_page
from redline.cli.command_line import ViewFlags
from redline.cli.show import Terminal
from redline.errors import UsageError
from redline.viewing.server import listening
from redline.viewing.site import Site


def execute(flags: ViewFlags) -> None:
    """Serve the runs of some folders on the loopback address until Ctrl-C. The address goes to stdout."""
    for path in flags.folders or ():
        if not path.is_dir():
            what = f"{path} is not a directory" if path.exists() else f"there is no directory {path}"
            raise UsageError(what, hint="name directories with runs, such as runs/, or a run's own")
    folders = flags.folders or [RUNS]
    with listening(Site(folders), flags.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        if flags.open:
            open_page(server.url, Terminal(stderr=True))
        sys.stderr.write(f"redline: it shows what is in {', '.join(map(str, folders))}; Ctrl-C ends it\n")
        try:
            server.serve()
        except KeyboardInterrupt:
            if interrupts.exit_code() != exits.INTERRUPTED:
                raise
