"""A quarter of a million users on hosts made of namespaces: `python -m tests.studies.users FOLDER [WORD…]`, as root.

A head, a server and two load hosts, connected by a bridge; chronyd on each follows that of the head, and sets no clock.
The lab runs `suites/users-250k.yaml` there; further words are its flags. What it measured is kept in FOLDER/run.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.namespaces import hosts, skip_without_namespaces, start_cluster

CHECKOUT = Path(__file__).parents[2]
REDLINE = Path(sys.executable).with_name("redline")
CPUS = {"head": "1", "server-0": "0", "load-0": "1", "load-1": "1"}


def main(folder: Path, words: list[str]) -> int:
    """Run the suite; its exit code."""
    skip_without_namespaces()
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch, hosts(Path(scratch), CPUS) as found:
        for host in found.values():
            host.run_chrony(found["head"])
        start_cluster(found)
        suite = CHECKOUT / "suites" / "users-250k.yaml"
        command = found["head"].command(str(REDLINE), "run", str(suite), "--on", "auto", "-o", str(folder / "run"))
        done = subprocess.run([*command, *words], cwd=CHECKOUT, env=found["head"].environment, check=False)
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or shutil.which("chronyd") is None:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))
