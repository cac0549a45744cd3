"""Guard a server: start it, keep its output, and leave nothing of it behind whatever happens to the lab.

A separate process, see `guard.py`. It imports only parts of the standard library that load in a few
milliseconds. docs/reference/launching.md describes the protocol:

- stdin: the order as a line of JSON; then nothing. Its end (the lab closed it, or was killed) means: stop the server.
- stdout: a line of JSON per event: `started` or `failed`, and `exited` when the server ended.
- stderr: the log. The first `log_head` bytes of the server's output, and the last `log_tail` when there was more.

Between events it sleeps in poll(2) and costs no CPU time.
"""

# pathlib takes longer to load than all that the warden imports.
# ruff: noqa: PTH102, PTH106, PTH123, PTH208

import ctypes
import fcntl
import json
import os
import re
import resource
import select
import signal
import time
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 18
SWEEP_S = 10.0
HIDDEN = b"***"
# By this process, and by Python when it starts.
CHANGED_SIGNALS = (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


class WardenOrder:
    """The order, a line of JSON; sizes in bytes. Raises KeyError for a missing key."""

    def __init__(self, line: bytes) -> None:
        order = json.loads(line)
        self.command: list[str] = order["command"]
        self.folder: str = order["folder"]
        self.cpus: list[int] = order["cpus"]
        self.grace_ns: int = order["grace_ns"]
        self.cgroup_parent: str = order["cgroup_parent"]
        self.log_head: int = order["log_head"]
        self.log_tail: int = order["log_tail"]
        self.secrets: list[str] = order["secrets"]


class Redactor:
    """Replaces secrets in a stream of bytes, also if they arrive in several parts; the longest match wins."""

    def __init__(self, secrets: Sequence[str]) -> None:
        # A variable of the environment may not be UTF-8; Python then has surrogates.
        encoded = (secret.encode(errors="surrogateescape") for secret in secrets)
        self.secrets = tuple(sorted(encoded, key=len, reverse=True))
        self.pattern = re.compile(b"|".join(map(re.escape, self.secrets)))
        self.longest = len(self.secrets[0]) if self.secrets else 0
        self.held = b""

    def passed(self, data: bytes, *, last: bool = False) -> bytes:
        """Return what can be written of all data so far. Unless `last`, a possible start of a secret is held back."""
        if not self.secrets:
            return data
        data, written, done = self.held + data, list[bytes](), 0
        end = len(data) if last else max(0, len(data) - self.longest + 1)
        for match in self.pattern.finditer(data):
            if match.start() >= end:
                break
            written += [data[done : match.start()], HIDDEN]
            done = match.end()
        written.append(data[done : max(done, end)])
        self.held = data[max(done, end) :]
        return b"".join(written)


class CappedLog:
    """A log of bounded size: the first `head` bytes as they come, and in memory the last `tail` of the rest."""

    def __init__(self, fd: int, head: int, tail: int, redactor: Redactor) -> None:
        self.fd, self.head, self.tail, self.redactor = fd, head, tail, redactor
        self.seen = 0
        self.written = 0
        self.last = b""

    def write(self, data: bytes) -> None:
        """Write the head to the file, keep the tail in memory. A full disk loses the log, but never blocks."""
        self._keep(self.redactor.passed(data))

    def end(self) -> None:
        """Write the rest. If more output follows, no secret may be split before and after."""
        self._keep(self.redactor.passed(b"", last=True))
        self.settle()

    def _keep(self, data: bytes) -> None:
        now = data[: max(0, self.head - self.seen)]
        self.seen += len(data)
        if now:
            self.written += self._put(now, self.written)
        rest = data[len(now) :]
        if rest:
            self.last = rest[-self.tail :] if len(rest) >= self.tail else (self.last + rest)[-self.tail :]

    def settle(self) -> None:
        """Write the tail behind the head; may be called again after more output."""
        if self.seen <= self.head:
            return
        dropped = self.seen - self.written - len(self.last)
        mark = f"\n[redline: {dropped} bytes of output were dropped here]\n".encode() if dropped else b""
        self._put(mark + self.last, self.written)

    def _put(self, data: bytes, offset: int) -> int:
        try:
            return os.pwrite(self.fd, data, offset)
        except OSError:
            return 0


class Warden:
    """Starts a server and guards it until its end."""

    def __init__(self, order: WardenOrder) -> None:
        self.order = order
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.log = CappedLog(2, order.log_head, order.log_tail, Redactor(order.secrets))
        self.output = -1
        self.server = 0
        self.cgroup = ""
        self.exited = False
        self.wake = listen_to_signals()

    def run(self) -> None:
        """Start, watch, stop, sweep."""
        try:
            self._start()
        except OSError as error:
            report({"event": "failed", "errno": error.errno or 0, "what": error.strerror or str(error)})
        else:
            self._watch()
        self._sweep()
        self._drain()
        self.log.end()

    def _start(self) -> None:
        """Fork, place the child while it waits, let it exec, and report whether that worked."""
        self.output, out = os.pipe()
        go_read, go_write = os.pipe()
        failed_read, failed_write = os.pipe()
        os.set_blocking(self.output, False)
        widen(self.output)
        self.server = os.fork()
        if self.server == 0:
            self._become_server(out, go_read, go_write, failed_write)
        for fd in (out, go_read, failed_write):
            os.close(fd)
        self._place()
        at_ns = time.monotonic_ns()
        os.write(go_write, b"!")
        os.close(go_write)
        errno = os.read(failed_read, 64)
        os.close(failed_read)
        if errno:
            raise OSError(int(errno), os.strerror(int(errno)))
        report({"event": "started", "pid": self.server, "at_ns": at_ns, "cgroup": self.cgroup})

    def _place(self) -> None:
        """Put the child into its own control group, if permitted, and onto its cores."""
        if self.order.cgroup_parent:
            folder = f"{self.order.cgroup_parent}/redline-{os.getpid()}-{time.monotonic_ns()}"
            try:
                os.mkdir(folder)
                self.cgroup = folder
                write_text(f"{folder}/cgroup.procs", str(self.server))
            except OSError:
                self._remove_cgroup()
        if self.order.cpus:
            os.sched_setaffinity(self.server, self.order.cpus)

    def _become_server(self, out: int, go: int, go_write: int, failed: int) -> None:
        try:
            os.close(go_write)
            begin_session(self.libc)
            if os.read(go, 1) != b"!":
                os._exit(127)
            for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
                os.dup2(source, target)
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            os.chdir(self.order.folder)
            os.execvp(self.order.command[0], self.order.command)  # noqa: S606
        except OSError as error:
            os.write(failed, str(error.errno or 0).encode())
        finally:
            os._exit(127)

    def _watch(self) -> None:
        """Watch until the server was asked to stop and has ended, or its grace period is over."""
        poll = select.poll()
        for fd in (0, self.wake, self.output):
            poll.register(fd, select.POLLIN)
        deadline: float | None = None
        while not (deadline is not None and (self.exited or time.monotonic() >= deadline)):
            left_ms = None if deadline is None else max(0.0, (deadline - time.monotonic()) * 1000)
            ready = {fd for fd, _ in poll.poll(left_ms)}
            if self.output in ready and not self._drain():
                poll.unregister(self.output)
            terminated = self.wake in ready and signal.SIGTERM in os.read(self.wake, 256)
            let_go = 0 in ready and not os.read(0, 4096)
            self._reap_watching()
            if (terminated or let_go) and deadline is None:
                poll.unregister(0)
                deadline = time.monotonic() + self.order.grace_ns / 1e9
                send(-self.server, signal.SIGTERM)

    def _drain(self) -> bool:
        """Move waiting output into the log. Returns False at its end. Bounded, so that a flood cannot hold the loop."""
        if self.output < 0:
            return False
        for _ in range(16):
            try:
                data = os.read(self.output, READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.log.write(data)
        return True

    def _reap_watching(self) -> None:
        """Reap orphans, and notice the server's end; it stays a zombie, so that its group's id stays taken."""
        while not self.exited:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            if ended.si_pid != self.server:
                os.waitpid(ended.si_pid, 0)
                continue
            self.exited = True
            self._drain()
            self.log.end()
            by_signal = ended.si_code != os.CLD_EXITED
            report(
                {
                    "event": "exited",
                    "code": None if by_signal else ended.si_status,
                    "signal": ended.si_status if by_signal else None,
                    "at_ns": time.monotonic_ns(),
                }
            )

    def _sweep(self) -> None:
        """Kill descendants until this process, which inherits every orphan, has no children."""
        deadline = time.monotonic() + SWEEP_S
        thorough = False
        if self.server:
            send(-self.server, signal.SIGKILL)
        while time.monotonic() < deadline:
            if self.cgroup:
                kill_cgroup(self.cgroup)
            for pid in descendants(os.getpid()) if thorough else ():
                send(pid, signal.SIGKILL)
            self._drain()
            if not reap_all():
                break
            thorough = True
            time.sleep(0.001)
        while not self._remove_cgroup() and time.monotonic() < deadline:
            time.sleep(0.001)

    def _remove_cgroup(self) -> bool:
        """Try to remove the group; return whether it is gone. The kernel refuses while a process in it is ending."""
        try:
            if self.cgroup:
                os.rmdir(self.cgroup)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        self.cgroup = ""
        return True


def listen_to_signals() -> int:
    """Return a pipe with the numbers of signals: SIGCHLD, or SIGTERM to end. A terminal's signals are for the lab."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return read


def begin_session(libc: ctypes.CDLL) -> None:
    """In a child: begin a session that ends with the parent, and handle signals as usual."""
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    for number in CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def report(event: dict[str, object]) -> None:
    """Send an event to the lab, which may be gone."""
    try:
        os.write(1, (json.dumps(event) + "\n").encode())
    except OSError:
        return


def widen(pipe: int) -> None:
    """Enlarge a pipe, so that a burst of output does not block the server while this process waits for a core."""
    try:
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return


def write_text(path: str, text: str) -> None:
    """Write to an existing file by a single write(2), as control files require."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def kill_cgroup(folder: str) -> None:
    """Kill every process of a control group, in a loop without cgroup.kill (before Linux 5.14)."""
    try:
        write_text(f"{folder}/cgroup.kill", "1")
    except OSError:
        try:
            with open(f"{folder}/cgroup.procs") as file:
                for line in file:
                    send(int(line), signal.SIGKILL)
        except OSError:
            return


def send(pid: int, number: int) -> None:
    """Send a signal to a process, or to the group `-pid`, that may have ended."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def descendants(root: int) -> list[int]:
    """All processes below `root`, by their parents in /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    all_below: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        all_below += below
        queue += below
    return all_below


def reap_all() -> bool:
    """Reap every child that has ended. Returns whether any is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def main() -> None:
    """Read the order and execute it. A partial order means that the lab has ended: do nothing then."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            return
        line += more
    Warden(WardenOrder(line)).run()
