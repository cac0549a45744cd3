"""The `redline` script. Only this module turns errors into exit codes.

0 done, 1 could not run, 2 wrong input, 3 an objective or `--fail-on` was missed or a load aborted, 130 interrupted
(143 by SIGTERM, 129 by SIGHUP).
"""

import errno
import gc
import io
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from redline import refusals
from redline.cli import exits, interrupts
from redline.cli.streams import LossyStream, VisibleStream

if TYPE_CHECKING:
    from redline.errors import RedlineError

_COMPLETES = "_REDLINE_COMPLETE"
"""The variable that the shell sets to ask for completions."""
_PLUGINS = "pydantic.plugin._loader"
"""What looks for plugins of pydantic: the models of Redline have none."""
_CORE, _THREADS = "numpy._core._multiarray_umath", "OPENBLAS_NUM_THREADS"
_OUTPUT_FAILS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def main() -> NoReturn:
    """Run the command line and exit."""
    interrupts.leave_at_once()
    gc.disable()  # a command enables it once it has imported what it needs, of which nothing is garbage
    _open_closed_streams()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character loses it, not the whole summary
        setattr(sys, name, VisibleStream(LossyStream(stream) if name == "stderr" else stream))
    leave_out_plugins()
    keep_numpy_to_one_thread()
    if _COMPLETES in os.environ:
        sys.modules["pydantic"] = None  # type: ignore[assignment] # typer would import it for values that nobody needs
    threading.excepthook = _say_of_thread
    try:
        with refusals.as_refusal():
            code = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    except refusals.RefusedError as error:
        code = _say(error)
    except Exception as error:
        if interrupts.led_to(error):
            code = exits.INTERRUPTED
        elif isinstance(error, OSError) and error.errno in _OUTPUT_FAILS:
            code = _say_unwritten(error)
        else:
            raise
    interrupts.leave_at_once()
    sys.exit(interrupts.exit_code() if code == exits.INTERRUPTED else code)


def leave_out_plugins() -> None:
    """Keep pydantic from reading what all installed packages say of themselves."""

    def real(name: str) -> Any:
        """What a later pydantic may want of its module besides."""
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(_PLUGINS, None)
        return getattr(import_module(_PLUGINS), name)

    plugins: Any = ModuleType(_PLUGINS)
    plugins.get_plugins, plugins.__getattr__ = tuple, real
    sys.modules[_PLUGINS] = plugins


class _Core(ExtensionFileLoader):
    """Loads the core of numpy, which begins a thread for each core of the machine, with a single thread."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        os.environ[_THREADS] = "1"
        try:
            return super().create_module(spec)
        finally:
            del os.environ[_THREADS]


class _CoreFinder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == _CORE else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Core(name, spec.origin)
        return spec


def keep_numpy_to_one_thread() -> None:
    """Have numpy use one thread whenever it is imported, unless the user said how many. Servers keep their environment.

    Our matrices are small. Where the system refuses a thread, the library of numpy ends the process by a signal.
    """
    if _THREADS not in os.environ:
        sys.meta_path.insert(0, _CoreFinder)


def _open_closed_streams() -> None:
    """Open /dev/null in place of a closed stream (`>&-`); otherwise the next file to be opened would take its number.

    Stdout then cannot be written, as the shell asked: the message is that of a full disk.
    """
    for name, access in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode))


def _run() -> int:
    """Return the exit code. Raises OSError if stdout cannot be written."""
    from typer.exceptions import TyperException  # noqa: PLC0415 - Ctrl-C is handled while these are imported

    from redline.cli.command_line import app  # noqa: PLC0415
    from redline.errors import RedlineError  # noqa: PLC0415
    from redline.git import leave_the_callers_repository  # noqa: PLC0415
    from redline.wording import asked_by, medium_of  # noqa: PLC0415

    leave_the_callers_repository()
    try:
        words = sys.argv[1:] or ["help"]
        with asked_by(medium_of(os.environ)):
            code = app([*words[1:], "--help"] if words[0] == "help" else words, standalone_mode=False)
    except SystemExit as done:
        code = done.code
    except TyperException as error:
        sys.stderr.write(_usage_message(error.format_message(), getattr(error, "ctx", None)))
        return error.exit_code
    except RedlineError as error:
        return _say(error)
    return code if isinstance(code, int) else exits.DONE


def _say(error: "RedlineError") -> int:
    """Print what is wrong, and return the exit code."""
    for problem in error.problems:
        sys.stderr.write(f"redline: {problem}\n")
    return error.exit_code


def _say_unwritten(error: OSError) -> int:
    """Print that stdout cannot be written, and return the exit code."""
    sys.stderr.write(f"redline: the output could not be written: {error.strerror}\n  hint: see where stdout goes\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python tries again when it exits
    return exits.COULD_NOT_RUN


def _say_of_thread(ended: "threading.ExceptHookArgs") -> None:
    """A thread of ours has ended by an exception: say in one line if the system refused it something."""
    refused = None if ended.exc_value is None else refusals.refusal_of(ended.exc_value)
    if refused is None:
        threading.__excepthook__(ended)
    else:
        _say(refused)


def _usage_message(message: str, context: Any) -> str:
    """Turn a message of typer into the form of ours. `context` is the command's, if known."""
    from redline.cli.other_options import instead_of  # noqa: PLC0415 - few command lines are wrong

    message = message.replace("Value error, ", "").partition(", unable to parse")[0].rstrip(".")  # pydantic's words
    message = f"{message[:1].lower()}{message[1:]}"
    command = context.command_path if context is not None else "redline"
    full = f"{command}: {message}"
    if instead := instead_of(full, sys.argv[1:]):
        return f"redline: {message.partition(' (Possible')[0]}\n  hint: {instead}\n"
    return f"redline: {message}\n  hint: see `{command} --help`\n"
