"""`redline import --journey`: a recording of a browser as the steps of a journey, and what has to be added to them."""

from collections.abc import Iterator

from redline.asking.asks import split
from redline.asking.written import as_yaml
from redline.cli.command_line import ImportFlags
from redline.cli.show import Terminal
from redline.document.format import count
from redline.errors import UsageError
from redline.extras.importing import detect, named
from redline.extras.importing.journeys import ROWS_FILE, ImportedJourney, read_journey
from redline.files import as_store_error, write_atomically
from redline.quantities import integer
from redline.schema.document import Plain
from redline.schema.request import METHODS
from redline.suite import opened_requests
from redline.wording import as_argument

_HEADINGS = {"request": "left out:", "secret": "sent without:", "value": "sent as recorded:"}


def import_journey(flags: ImportFlags) -> None:
    """Show which steps a recording has, and write them. Raises UsageError and StoreError."""
    if other := flags.given(among={"times", "most"}):
        hint = "leave one out: a journey has all requests in order, with think times"
        raise UsageError(f"--journey takes no {other[0]}", hint=hint)
    with opened_requests(flags.file) as source:
        known = detect(source) if flags.form is None else named(flags.form)
        if known is None or known.name != "har":
            what = "a list of requests, or a journey" if known is None else known.a_file
            hint = "record the pages in a browser's developer tools, and export them as HAR"
            raise UsageError(f"{flags.file} is {what}, which has no journey of one user", hint=hint)
        keep = frozenset(name.lower() for name in split(flags.keep))
        made = read_journey(source, host=flags.host, keep=keep, whole=flags.all)
    if flags.output is not None:
        if made.files and flags.output.resolve().parent != flags.file.resolve().parent:
            message = f"{flags.file} names {made.files[0]}, which is read from the folder of the journey"
            raise UsageError(message, hint=f"write the journey there: -o {flags.file.parent / flags.output.name}")
        text = f"# A journey of {flags.file.name}, recording of a browser (HAR).\n{as_yaml(made.document)}"
        with as_store_error(flags.output, begun=False):
            write_atomically(flags.output, text.encode())
    console = Terminal()
    for line in _lines(made, flags):
        console.print(line, highlight=False, soft_wrap=True)


def _lines(made: ImportedJourney, flags: ImportFlags) -> Iterator[str]:
    yield f"{flags.file}: recording of a browser (HAR), a journey of {count(len(made.once) + len(made.steps), 'step')}"
    if made.once:
        yield "once, before the measurement:"
        yield from map(_step, made.once)
        yield "then again and again:"
    yield from map(_step, made.steps)
    for kind, heading in _HEADINGS.items():
        notes = sorted((note for note in made.left_out if note.kind == kind), key=lambda note: -note.count)
        yield from [heading] if notes else []
        for note in notes:
            yield f"{integer(note.count):>9}  {note.why}, such as {note.example}"
    if made.columns:
        names = ",".join(made.columns)
        yield f"write {ROWS_FILE} beside it, with the line {names} and a row for each user: no password is taken over"
    yield f"{made.host}, to which they went, is not contacted: the server that you name is"
    if flags.output is None:
        yield "`-o checkout.yaml` writes them"
    else:
        yield f"next: redline load http://127.0.0.1:8080/ --requests {as_argument(flags.output)}"


def _step(step: dict[str, Plain]) -> str:
    """A step in a line, with what it waits for and takes."""
    method = next(key for key in (*METHODS, "method") if key in step)
    path = step["path"] if method == "method" else step[method]
    said = f"{step['method'] if method == 'method' else method.upper()} {path}"
    expect, take = step.get("expect"), step.get("take")
    parts = [f"after {step['think']}"] if "think" in step else []
    parts += [f"status {expect['status']}"] if isinstance(expect, dict) else []
    parts += [f"takes {', '.join(take)}"] if isinstance(take, dict) else []
    details = f" ({', '.join(parts)})" if parts else ""
    return f"{'':>9}  {said}{details}"
