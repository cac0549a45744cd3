"""A process that has imported `redline` and forks for every call: the import costs more CPU time than most calls.

It has also imported what a call imports when it needs it, built the models that pydantic builds at their first
use, and read the built-in catalogue.

Like the script, a call is a process of its own, with its own arguments, environment, folder and output, which runs
`main` and ends as Python does. Tests of signals, and of what happens before and during the imports, run the script.
"""

import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages

LARGEST = 1 << 17
"""The most bytes of a call, which is a single packet."""
SHORT_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""How long a search waits for a host whose CPU time is taken: as often as for a user, 32 s in all in place of 255."""
PATIENT = "REDLINE_TEST_PATIENT"
"""Set in the environment of a call whose search has to end with an answer: it waits as long as for a user."""
HASTY = "REDLINE_TEST_HASTY"
"""Set in the environment of calls whose requests are answered wrongly: none waits 5 s for the rest of an answer."""
HASTY_WITHIN_S = (2.0, 30.0)
BRIEF = "REDLINE_TEST_BRIEF"
"""Set in the environment of calls that compare servers a factor apart: starts are short, and few are sampled."""
BRIEF_START_NS = 1_000_000_000

NOT_IMPORTED = {"redline.extras", "redline.pytest_plugin"}
"""What a call imports for itself, since it need not be there."""


class Preloaded:
    """The tests' side. It makes one call at a time. `package` is the folder of another `redline` than the installed."""

    def __init__(self, script: Path, package: Path | None = None) -> None:
        self.script = script
        self._calls, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, script, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            # A process that has threads must not fork.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **({"PYTHONPATH": str(package)} if package else {})},
        )
        theirs.close()

    def call(self, args: list[str], folder: Path, environment: dict[str, str], limit_s: float) -> tuple[int, str, str]:
        """The exit code, as `subprocess` returns it, stdout and stderr. Raises TimeoutError."""
        out, err, status = pipes = [os.pipe() for _ in range(3)]
        call = json.dumps([[str(self.script), *args], str(folder), environment]).encode()
        socket.send_fds(self._calls, [call], [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        read = _read_all([end for end, _ in pipes], limit_s, status[0])
        if not read[status[0]]:
            raise RuntimeError(self._process.communicate()[1].decode())
        return int(read[status[0]].split()[1]), read[out[0]].decode(), read[err[0]].decode()

    def end(self) -> None:
        """End the process."""
        self._calls.close()
        self._process.communicate(timeout=60)


def _read_all(pipes: list[int], limit_s: float, status: int) -> dict[int, bytes]:
    """The output of each pipe until its other end is closed. `status` begins with the id of the process."""
    read = dict.fromkeys(pipes, b"")
    deadline = time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for ready, _ in selector.select(1):
                chunk = os.read(ready.fd, 65536)
                read[ready.fd] += chunk
                if not chunk:
                    selector.unregister(ready.fd)
                    os.close(ready.fd)
            if time.monotonic() > deadline:
                os.kill(int(read[status].split()[0]), signal.SIGKILL)
                raise TimeoutError(read)
    return read


def _serve(calls: socket.socket) -> None:
    """Fork for every call. Returns in the process of a call, in the state of the script after its imports."""
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    gc.freeze()
    while call := (received := socket.recv_fds(calls, LARGEST, 3))[0]:
        *streams, status = received[1]
        process = os.fork()
        if process == 0:
            for stream, number in zip(streams, (1, 2), strict=True):
                os.dup2(stream, number)
            for each in (*streams, status):
                os.close(each)
            calls.close()
            sys.argv, folder, environment = json.loads(call)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            if not os.environ.pop(PATIENT, ""):
                cell_search.WAITS_S = SHORT_WAITS_S
            if os.environ.pop(HASTY, ""):
                verifying.VERIFY_WITHIN_S = HASTY_WITHIN_S
            if os.environ.pop(BRIEF, ""):
                budget.SHORTEST_START_NS, planning.SAMPLED_STARTS = BRIEF_START_NS, FEWEST_STARTS
            Path("/proc/self/comm").write_text("redline")
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return
        for stream in streams:
            os.close(stream)
        os.write(status, f"{process} ".encode())
        os.write(status, str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())
        os.close(status)
    sys.exit()


def _prepare() -> None:
    """Import the core, build its models, and read its catalogue."""
    from pydantic import BaseModel  # noqa: PLC0415

    import redline  # noqa: PLC0415

    import_module("encodings.idna")  # of the first connection to a name
    for room in iter_modules(redline.__path__, "redline."):
        if room.name not in NOT_IMPORTED:
            for module in walk_packages(getattr(import_module(room.name), "__path__", ()), f"{room.name}."):
                import_module(module.name)

    def below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    for model in set(below(BaseModel)):
        model.model_rebuild()  # does nothing where that is done
    with suppress(RedlineError):  # of a core that has none
        read_catalogues()  # which remembers the servers of a file by its name and text


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.path.insert(0, str(Path(sys.argv[1]).parent))
    from redline.asking.catalogues import read_catalogues
    from redline.cli.command_line import FLAGS
    from redline.cli.declaring import execute_of
    from redline.cli.main import main
    from redline.driving import verifying
    from redline.errors import RedlineError
    from redline.running import cell_search
    from redline.stats.accounting import FEWEST_STARTS
    from redline.suite import budget, planning

    for command in FLAGS:
        with suppress(RedlineError):  # of an extra that is not there
            execute_of(command)
    _prepare()
    _serve(socket.socket(fileno=int(sys.argv[2])))
    main()
