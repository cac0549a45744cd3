"""`redline import`: turn a file of requests into a list, and say what is left out."""

from collections.abc import Iterator
from pathlib import Path

from redline.asking.asks import split
from redline.asking.imported import read_file, times_of, times_summary
from redline.asking.naming import at_least_one
from redline.asking.written import as_yaml
from redline.cli.command_line import ImportFlags
from redline.cli.show import Terminal
from redline.errors import UsageError
from redline.extras.importing.foreign import has_requests
from redline.extras.importing.journey_command import import_journey
from redline.files import as_store_error, write_atomically
from redline.quantities import integer, percent, size
from redline.schema.document import Document, Plain
from redline.schema.request import METHODS
from redline.suite.imported import MOST_REQUESTS, Imported, Wanted
from redline.suite.loading import MOST_BYTES
from redline.wording import as_argument

_MOST_LINES = 20
_HEADINGS = {
    "request": "left out:",
    "secret": "sent without:",
    "made": "made up:",
}


def execute(flags: ImportFlags) -> None:
    """Show which requests a file has, and write them."""
    for output in (flags.output, flags.times):
        if output is not None and output.exists():
            raise UsageError(f"{output} exists already", hint="give another name, or remove it")
    if flags.journey:
        import_journey(flags)
        return
    _check(flags)
    most = MOST_REQUESTS if flags.most is None else at_least_one("most", flags.most)
    keep = frozenset(name.lower() for name in split(flags.keep))
    made = read_file(flags.file, flags.form, Wanted(keep, flags.host, most, times=flags.times is not None))
    if isinstance(made, Document):
        hint = f"give it to a command: redline load http://127.0.0.1:8080/ --requests {as_argument(flags.file)}"
        if isinstance(made.value, list) and not has_requests(made.value):
            hint = "write `- {name: items, get: /items}` for each request"
            raise UsageError(f"{flags.file}: this is a list without a request", hint=hint)
        kind = "list of requests" if isinstance(made.value, list) else "journey"
        raise UsageError(f"{flags.file} is a {kind} already", hint=hint)
    console = Terminal()
    if flags.output is not None:
        _write(made, flags.file, flags.output)
    if flags.times is not None:
        with as_store_error(flags.times, begun=False):
            write_atomically(flags.times, times_of(made).times.encode())
    _show(made, flags.file, console)
    for line in _next(made, flags):
        console.print(line, highlight=False, soft_wrap=True)


def _check(flags: ImportFlags) -> None:
    """Raise UsageError where flags of a list do not go together."""
    if flags.all:
        raise UsageError("--all is about --journey", hint="leave it out: a list has all requests, also what pages load")
    if flags.times is not None and flags.output is None:
        hint = "add -o requests.yaml: the times name requests by their numbers in it"
        raise UsageError(f"--times {flags.times} goes with a list", hint=hint)
    if flags.times is not None and flags.output is not None and flags.times.resolve() == flags.output.resolve():
        raise UsageError(f"--times {flags.times} is the file of -o", hint="give the list and its times two names")


def _show(made: Imported, file: Path, console: Terminal) -> None:
    total, kept = made.total, sum(made.counts)
    shown = f"{file}: {made.form}, {integer(len(made.requests))} different request{'s' * (len(made.requests) > 1)}"
    if total != len(made.requests):
        shown += f", which {'are' if len(made.requests) > 1 else 'is'} {percent(kept / total)} of {integer(total)}"
    console.print(shown, highlight=False, soft_wrap=True)
    for request, count in list(zip(made.requests, made.counts, strict=True))[:_MOST_LINES]:
        console.print(f"{integer(count):>9}  {_line(request)}{_details(request)}", highlight=False, soft_wrap=True)
    if (more := len(made.requests) - _MOST_LINES) > 0:
        console.print(f"{'':>9}  and {integer(more)} more", highlight=False)
    for kind, heading in _HEADINGS.items():
        entries = sorted((entry for entry in made.left_out if entry.kind == kind), key=lambda entry: -entry.count)
        for at, entry in enumerate(entries):
            if at == 0:
                console.print(heading, highlight=False)
            example = f", such as {entry.example}" if entry.example else ""
            console.print(f"{integer(entry.count):>9}  {entry.why}{example}", highlight=False, soft_wrap=True)


def _line(request: dict[str, Plain]) -> str:
    method = next((key for key in METHODS if key in request), None)
    path = request["path"] if method is None else request[method]
    return f"{request['method'] if method is None else method.upper()} {path}"


def _details(request: dict[str, Plain]) -> str:
    """Return the size of the body, and the expected status unless it is 200."""
    parts = list[str]()
    if isinstance(body := request.get("body"), str):
        parts.append(f"with {size(len(body.encode()))}")
    elif isinstance(body, dict):
        parts.append(f"with {body['file']}")
    if isinstance(form := request.get("multipart", request.get("form")), (list, dict)):
        parts.append(f"with a form of {len(form)} part{'s' * (len(form) > 1)}")
    parts += ["in chunks"] if "chunked" in request else []
    parts += ["after an answer 100"] if "expect_continue" in request else []
    if isinstance(expect := request.get("expect"), dict):
        parts.append(f"status {expect['status']}")
    return f" ({', '.join(parts)})" if parts else ""


def _write(made: Imported, file: Path, output: Path) -> None:
    """Write the list. Raises UsageError if it could not be read again, and StoreError."""
    if made.body_files and output.resolve().parent != file.resolve().parent:
        message = f"{file} names {made.body_files[0]}, which is read from the folder of the list"
        raise UsageError(message, hint=f"write the list there: -o {file.parent / output.name}")
    text = f"# Requests of {file.name}, {made.form}.\n{as_yaml(made.requests)}"
    if len(text.encode()) > MOST_BYTES:
        raise UsageError("this list is longer than 256 KiB", hint=f"take fewer: --most {len(made.requests) // 2 or 1}")
    with as_store_error(output, begun=False):
        write_atomically(output, text.encode())


def _next(made: Imported, flags: ImportFlags) -> Iterator[str]:
    """Say what to do with the list."""
    if made.host:
        yield f"{made.host}, to which they went, is not contacted: the server that you name is"
    if flags.output is None:
        yield f"`-o requests.yaml` writes them; --requests {as_argument(flags.file)} takes the file as it is"
    elif flags.times is not None:
        yield f"{times_summary(made)}; wrote {flags.output} and {flags.times}"
        replayed = f"--requests {as_argument(flags.output)} --replay {as_argument(flags.times)}"
        yield f"next: redline load http://127.0.0.1:8080/ {replayed}"
    else:
        yield f"wrote {flags.output}; next: redline load http://127.0.0.1:8080/ --requests {as_argument(flags.output)}"
