"""Which line of a command's output names the error."""

import pytest

from redline.launching.error_lines import error_line, reason

GIT_OWNERSHIP = """\
fatal: detected dubious ownership in repository at '/srv/it'
To add an exception for this directory, call:

\tgit config --global --add safe.directory /srv/it
"""
GIT_FULL = """\
Preparing worktree (detached HEAD 1234567)
error: unable to write file src/a.c: No space left on device
fatal: Could not reset index file to revision 'HEAD'.
"""
PERF_UBUNTU = """\
WARNING: perf not found for kernel 6.18.0

  You may need to install the following packages for this specific kernel:
    linux-tools-6.18.0
    linux-cloud-tools-6.18.0

  You may also want to install one of the following packages to keep up to date:
    linux-tools-generic
    linux-cloud-tools-generic
"""
PERF_PARANOID = """\
Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
access to performance monitoring and observability operations for processes
without CAP_PERFMON, CAP_SYS_PTRACE or CAP_SYS_ADMIN Linux capability.
To make the adjusted perf_event_paranoid setting permanent preserve it
in /etc/sysctl.conf (e.g. kernel.perf_event_paranoid = <setting>)
"""
NODE = """\
node:events:502
      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use :::18080
    at Server.setupListenHandle [as _listen2] (node:net:1908:16)
Emitted 'error' event on Server instance at:
    at emitErrorNT (node:net:1944:8) {
  code: 'EADDRINUSE',
  port: 18080
}

Node.js v20.20.2
"""
JVM = """\
Exception in thread "main" java.lang.RuntimeException: could not start
\tat A.main(A.java:1)
Caused by: java.lang.IllegalArgumentException: Port value out of range: 99999
\tat java.base/java.net.ServerSocket.<init>(ServerSocket.java:269)
\t... 3 more
"""
PYTHON = """\
ERROR: no plugin named metrics; going on without
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    serve()
OSError: [Errno 98] Address already in use
"""
RUST = """\
listening soon
thread 'main' panicked at src/main.rs:4:5:
called `Result::unwrap()` on an `Err` value: Os { code: 98, kind: AddrInUse }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
GO = """\
panic: open conf.yaml: no such file or directory

goroutine 1 [running]:
main.main()
\t/tmp/x.go:7 +0x1d
exit status 2
"""
CARGO = """\
   Compiling server v0.1.0 (/tmp/server)
error[E0425]: cannot find value `port` in this scope
 --> src/main.rs:2:5
  |
2 |     port
  |     ^^^^ not found in this scope

For more information about this error, try `rustc --explain E0425`.
error: could not compile `server` (bin "server") due to 1 previous error
"""
MAKE = """\
cc -c server.c
server.c:1:10: fatal error: uv.h: No such file or directory
    1 | #include <uv.h>
      |          ^~~~~~
compilation terminated.
make: *** [Makefile:2: server.o] Error 1
"""
MAVEN = """\
[INFO] Scanning for projects...
[ERROR] Failed to execute goal on project server: Could not resolve dependencies
[ERROR] -> [Help 1]
[ERROR] For more information about the errors and possible solutions, please read the following articles:
[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/DependencyResolutionException
"""
DOCKER = """\
docker: Error response from daemon: Bind for 127.0.0.1:8080 failed: port is already allocated.

Run 'docker run --help' for more information
"""
GO_FLAGS = """\
flag provided but not defined: -port
Usage of ./server:
  -listen string
    \twhere (default ":80")
"""
URFAVE = """\
Incorrect Usage: flag provided but not defined: -port

NAME:
   server - A new cli application

USAGE:
   server [global options]

GLOBAL OPTIONS:
   --listen value
"""
COBRA = """\
Error: unknown flag: --port
Usage:
  server [flags]

Flags:
      --listen string   where
  -h, --help            help for server
"""
ARGPARSE = """\
usage: server.py [-h] [--listen LISTEN]
server.py: error: unrecognized arguments: --port
"""
PICOCLI = """\
Unknown option: '--port'
Usage: server [-hV] [--listen=<listen>]
Serves.
Options:
  -h, --help   Show this help.
"""
GETOPT = """\
./server: unrecognized option '--port'
Usage: ./server [-l ADDRESS]
All options have defaults.
"""


@pytest.mark.parametrize(
    ("said", "line", "cause"),
    [
        (GIT_OWNERSHIP, "fatal: detected dubious", "detected dubious ownership in repository at '/srv/it'"),
        (GIT_FULL, "error: unable to write", "unable to write file src/a.c: No space left on device"),
        (PERF_UBUNTU, "WARNING: perf", "perf not found for kernel 6.18.0"),
        (PERF_PARANOID, "Access to", "Access to performance monitoring and observability operations is limited."),
        (NODE, "Error: listen", "listen EADDRINUSE: address already in use :::18080"),
        (JVM, "Caused by: ", "Caused by: java.lang.IllegalArgumentException: Port value out of range: 99999"),
        (PYTHON, "OSError", "OSError: [Errno 98] Address already in use"),
        (RUST, "called", "called `Result::unwrap()` on an `Err` value: Os { code: 98, kind: AddrInUse }"),
        (GO, "panic", "panic: open conf.yaml: no such file or directory"),
        (CARGO, "error[E0425]", "error[E0425]: cannot find value `port` in this scope"),
        (MAKE, "server.c:1:10: fatal", "server.c:1:10: fatal error: uv.h: No such file or directory"),
        (MAVEN, "[ERROR] Failed", "Failed to execute goal on project server: Could not resolve dependencies"),
        (DOCKER, "docker: Error", "Bind for 127.0.0.1:8080 failed: port is already allocated."),
        ("E: linux-perf-6.18 is not installed.\n", "E: linux", "linux-perf-6.18 is not installed."),
        ("\x1b[31merror\x1b[0m: no\nsuch\n", "error: no", "no"),
        ("sh: 1: ./build.sh: Permission denied\n", "sh: 1", "sh: 1: ./build.sh: Permission denied"),
        ("working\nno configuration found\n", "no conf", "no configuration found"),
        ("no such thing\nmake[1]: *** [it] Error 3\nmake: Leaving directory '/x'\n", "no such", "no such thing"),
        ("make: *** No rule to make target 'it'.  Stop.\n", "make:", "make: *** No rule to make target 'it'.  Stop."),
        (GO_FLAGS, "flag provided", "flag provided but not defined: -port"),
        (URFAVE, "Incorrect Usage", "Incorrect Usage: flag provided but not defined: -port"),
        (COBRA, "Error: unknown", "unknown flag: --port"),
        (ARGPARSE, "server.py: error: unrec", "server.py: error: unrecognized arguments: --port"),
        (PICOCLI, "Unknown option", "Unknown option: '--port'"),
        (GETOPT, "./server: unrec", "./server: unrecognized option '--port'"),
        ("Usage: ./server PORT\n", "Usage:", "Usage: ./server PORT"),
        ("  indented alone\n", "indented", "indented alone"),
        ("error:\n", "error:", "error:"),
        ("", "", ""),
    ],
)
def test_the_line_that_names_the_error(said: str, line: str, cause: str) -> None:
    assert error_line(said).startswith(line)
    assert reason(said) == cause
