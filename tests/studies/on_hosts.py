"""A suite on hosts made of namespaces: `python -m tests.studies.on_hosts FOLDER SUITE [WORD…]`, as root.

A head, a server and two load hosts, connected by a bridge; chronyd on each follows that of the head, and sets no clock.
Hosts share a JDK that is fetched first: they reach no network but their own. The lab runs the suite there, with further
words as its flags. What it measured is kept in FOLDER/run.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from redline.launching.jdks import provision
from tests.e2e.namespaces import hosts, skip_unless_possible, start_cluster

CHECKOUT = Path(__file__).parents[2]
REDLINE = Path(sys.executable).with_name("redline")
JDK = 21
CPUS = {"head": "1", "server-0": "0", "load-0": "1", "load-1": "1"}


def main(folder: Path, suite: Path, words: list[str]) -> int:
    """Run the suite. Returns its exit code."""
    try:
        skip_unless_possible()
    except pytest.skip.Exception as reason:
        sys.exit(f"not possible here: {reason}")
    jdks = folder / "jdks"
    provision(JDK, jdks, print)
    with tempfile.TemporaryDirectory() as scratch, hosts(Path(scratch), CPUS) as found:
        for host in found.values():
            host.run_chrony(found["head"])
            cache = Path(host.environment["XDG_CACHE_HOME"]) / "redline"
            cache.mkdir(parents=True)
            (cache / "jdks").symlink_to(jdks)
        start_cluster(found)
        command = found["head"].command(str(REDLINE), "run", str(suite), "--on", "auto", "-o", str(folder / "run"))
        tools = {"RUSTUP_HOME": str(Path.home() / ".rustup"), "CARGO_HOME": str(Path.home() / ".cargo")}
        environment = {**found["head"].environment, **tools}
        done = subprocess.run([*command, *words], cwd=CHECKOUT, env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) < 3 or shutil.which("chronyd") is None:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), sys.argv[3:]))
