"""Check journeys across their steps, and read their rows: values before they are taken, conditions, columns. Pure.

Errors about rows give the line of a mistake and never quote it: rows hold passwords.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from redline.errors import Location, UsageError
from redline.model import Journey, JourneyStep, Load, Open, Request, Rows, Scenario, StepCondition, TakenValue
from redline.model.journey import RowTable, TableError, columns_of, read_table, sha256_of_rows
from redline.model.template import rows_used, taken
from redline.quantities import clip
from redline.schema.document import Path
from redline.schema.expected import statuses_of
from redline.schema.journey import JourneySchema, RowsSchema, StepSchema
from redline.schema.load import think_of
from redline.schema.scenario import ScenarioSchema
from redline.suite.secret_names import is_secret_name
from redline.suite.validate.checking import Sheet, suggest
from redline.suite.validate.referenced_files import Files, noted, picks_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ONLY_JOURNEYS = "write it in a step of a `journey`, or double the braces to send it as it is"


def check_has_no_journey(sheet: Sheet, path: Path, requests: Iterable[Request]) -> None:
    """Note placeholders that only the steps of a journey fill in."""
    for text in (text for request in requests for text in request.texts):
        for placeholder in [
            *(f"{{take:{name}}}" for name in taken(text)),
            *(f"{{row:{name}}}" for name in rows_used(text)),
        ]:
            sheet.wrong(path, f"`{clip(placeholder)}` is known in a journey alone", _ONLY_JOURNEYS)


def read_scenario(sheet: Sheet, path: Path, name: str, written: ScenarioSchema, files: Files) -> Scenario | None:
    """The scenario at a path, with what the files hold that it names; None after noting a problem."""
    requests, known_before = written.all_requests(), len(sheet.problems)
    picks, journey = picks_of(sheet, path, requests, files), None
    if written.journey is None:
        check_has_no_journey(sheet, path, requests)
    else:
        journey = read_journey(sheet, (*path, "journey"), written.journey, files)
    return None if picks is None or len(sheet.problems) > known_before else written.scenario(name, picks, journey)


def read_journey(sheet: Sheet, path: Path, written: JourneySchema, files: Files) -> Journey | None:
    """The journey at a path, whose rows are in a file of `files`; None after noting everything that is wrong."""
    known_before = len(sheet.problems)
    _check_names(sheet, path, written)
    _check_takes(sheet, path, written)
    _check_again(sheet, path, written)
    lists = {key: _steps(sheet, (*path, key), getattr(written, key)) for key in ("once", "steps")}
    rows = _rows(sheet, path, written, files)
    if written.users is not None and not written.once:
        message = "without `once` every journey is a new visitor's, so there are no users to count"
        sheet.wrong((*path, "users"), message, "remove it, or add `once`")
    if len(sheet.problems) > known_before:
        return None
    return Journey(
        once=lists["once"],
        again_at=() if written.again_at is None else statuses_of(written.again_at),
        steps=lists["steps"],
        rows=rows,
        cookies=written.cookies,
        users=written.users,
    )


def _every(path: Path, written: JourneySchema) -> Iterator[tuple[Path, StepSchema]]:
    """The steps in the order in which a user takes them, with their paths."""
    for key in ("once", "steps"):
        for at, step in enumerate(getattr(written, key)):
            yield (*path, key, at), step


def _check_names(sheet: Sheet, path: Path, written: JourneySchema) -> None:
    seen = set[str]()
    for where, step in _every(path, written):
        if step.name in seen:
            sheet.wrong((*where, "name"), f"the step `{step.name}` is given twice", "rename one of the two")
        seen |= {step.name} if step.name else set()


def _check_takes(sheet: Sheet, path: Path, written: JourneySchema) -> None:
    """Note values that are used and never taken, taken too late, or perhaps not taken."""
    known, all_names = dict[str, list[StepSchema]](), {name for _, step in _every(path, written) for name in step.take}
    named = dict[str, StepSchema]()
    for where, step in _every(path, written):
        for name in [name for text in step.request().texts for name in taken(text)]:
            if name in known:
                if not any(_is_surely_sent(source, step, named) for source in known[name]):
                    source = known[name][0].name or "NAME"
                    hint = f"give this step the same `when`, or one about that step, such as `when: {{{source}: 200}}`"
                    sheet.wrong(where, f"`{clip(name)}` is not known if the step that takes it is left out", hint)
                continue
            if name not in all_names:
                hint = suggest(name, sorted(all_names), "the steps take")
                sheet.wrong(where, f"no step takes a value `{clip(name)}`", hint)
            elif name in step.take:
                hint = "take it in an earlier step"
                sheet.wrong(where, f"`{clip(name)}` is taken from this step's answer, so the step cannot send it", hint)
            else:
                sheet.wrong(where, f"`{clip(name)}` is used before it is taken", "move the step that takes it up")
        for name in step.take:
            known.setdefault(name, []).append(step)
        if step.name:
            named.setdefault(step.name, step)


def _is_surely_sent(source: StepSchema, user: StepSchema | None, named: Mapping[str, StepSchema]) -> bool:
    """Whether a step that takes a value was sent wherever a later step is sent that uses it."""
    if not source.when:
        return True
    while user is not None and user is not source:
        if user.when == source.when:
            return True
        user = next((named.get(name) for name in user.when or {}), None)
    return user is source


def _check_again(sheet: Sheet, path: Path, written: JourneySchema) -> None:
    if written.again_at is None:
        return
    again = statuses_of(written.again_at)
    if not written.once:
        sheet.wrong((*path, "again_at"), "there is no `once` to take again", "remove it, or add `once: [...]`")
    for where, step in _every(path, written):
        if both := [status for status in statuses_of(step.expect.status) if status in again]:
            hint = "remove it from one of the two"
            sheet.wrong((*where, "expect", "status"), f"{both[0]} is right here, and in `again_at` too", hint)


def _steps(sheet: Sheet, path: Path, written: Sequence[StepSchema]) -> tuple[JourneyStep, ...]:
    made = list[JourneyStep]()
    for at, step in enumerate(written):
        if at == 0 and step.think is not None:
            hint = "remove it; the time between journeys is the load's `think`, as in `closed: {users: 8, think: 1s}`"
            sheet.wrong((*path, at, "think"), "there is no answer before the first step", hint)
        when = _condition(sheet, (*path, at, "when"), step.when or {}, written[:at], written)
        take = tuple(
            TakenValue(name=name, **{f"from_{kind}": text for kind, text in source.sources.items()})
            for name, source in step.take.items()
        )
        made.append(JourneyStep(think=think_of(step.think), when=when, take=take))
    return tuple(made)


def _condition(
    sheet: Sheet,
    path: Path,
    when: Mapping[str, int | list[int]],
    before: Sequence[StepSchema],
    all_steps: Sequence[StepSchema],
) -> StepCondition | None:
    for name, status in when.items():
        earlier = [step.name for step in before]
        if name in earlier and before[earlier.index(name)].websocket is not None:
            message = f"the step `{clip(name)}` is a WebSocket, whose messages have no status"
            hint = "leave `when` out: a journey ends with a step that fails"
        elif name in earlier:
            return StepCondition(step=earlier.index(name), statuses=statuses_of(status))
        elif name in [step.name for step in all_steps]:
            message, hint = f"the step `{clip(name)}` does not come before this step", "name an earlier step"
        else:
            message = f"there is no step `{clip(name)}` in this list"
            hint = suggest(name, filter(None, earlier), "earlier steps with a name")
        sheet.wrong((*path, name), message, hint, key=True)
    return None


def _rows(sheet: Sheet, path: Path, written: JourneySchema, files: Files) -> Rows | None:
    """The rows without their values; None without any, and after noting a problem."""
    used = [
        (where, name)
        for where, step in _every(path, written)
        for text in step.request().texts
        for name in rows_used(text)
    ]
    if written.rows is None:
        for where, name in used:
            hint = "add `rows: users.csv` to the journey: a CSV file whose first line names the columns"
            sheet.wrong(where, f"`{{row:{clip(name)}}}` needs rows", hint)
        return None
    rows = written.rows if isinstance(written.rows, RowsSchema) else RowsSchema(file=written.rows)
    where = (*path, "rows", "file") if isinstance(written.rows, RowsSchema) else (*path, "rows")
    if not used:
        sheet.wrong(where, "no step uses a row", "write {row:COLUMN} in a step, or remove `rows`")
        return None
    if rows.use != "user" and (first := next((place for place, _ in used if "once" in place), None)):
        sheet.wrong(first, "`once` is a user's own, and its rows are not", "write `rows: {file: users.csv, use: user}`")
        return None
    table = noted(sheet, where, lambda: _table(files.text(rows.file), rows.file))
    if table is None:
        return None
    known_before = len(sheet.problems)
    for place, name in used:
        if name not in table.columns:
            hint = suggest(name, table.columns, "its first line has")
            sheet.wrong(place, f"{rows.file} has no column `{clip(name)}`", hint)
    if len(sheet.problems) > known_before:
        return None
    _check_headers(sheet, path, written, table, rows.file)
    if rows.use == "unique" and len(table.values) == 1:
        sheet.wrong(where, "the check before the load takes the only row", "write a row for each journey, and one more")
    columns = tuple(name for name in table.columns if name in {name for _, name in used})
    secret = tuple(name for name in columns if is_secret_name(name))
    digest = sha256_of_rows(columns_of(table, [name for name in columns if name not in secret]))
    return Rows(
        file=files.place(rows.file),
        columns=columns,
        count=len(table.values),
        use=rows.use,
        secret=secret,
        sha256=digest,
    )


def _table(text: str, file: str) -> RowTable:
    try:
        return read_table(text)
    except TableError as error:
        raise UsageError(error.message, hint=error.hint, place=Location(file, error.line, 1)) from None


def _check_headers(sheet: Sheet, path: Path, written: JourneySchema, table: RowTable, file: str) -> None:
    """Note the first value of a column that a header cannot hold."""
    for where, step in _every(path, written):
        names = {name for _, text in step.request().header_lines for name in rows_used(text)}
        for name in sorted(names):
            column = table.columns.index(name)
            wrong = next((at for at, row in enumerate(table.values) if _CONTROL.search(row[column])), None)
            if wrong is not None:
                message = (
                    f"{file}, line {table.lines[wrong]}: this `{name}` has a control character, and goes into a header"
                )
                sheet.wrong(where, message, "remove it from the file")


class Conflict(NamedTuple):
    """What a load asks that a journey cannot do. `key` is the key of the load; empty for the load as a whole."""

    key: str
    message: str
    hint: str


def conflict(scenario: Scenario, load: Load) -> Conflict | None:
    """What a load asks that a scenario's journey cannot do; None if there is nothing."""
    journey, shape = scenario.journey, load.shape
    if journey is None:
        return None
    name = f"`{scenario.name}` is a journey"
    if shape.depth > 1:
        return Conflict("depth", f"{name}, whose users send one request after the other", "remove `depth`")
    if isinstance(shape, Open) and shape.arrivals == "replayed":
        return Conflict("arrivals", f"{name}, which begins at a rate, not at times of a recording", "write a `rate`")
    has_own_rows = journey.rows is not None and journey.rows.use == "user"
    return _too_few_rows(name, journey, load) if has_own_rows else None


def _too_few_rows(name: str, journey: Journey, load: Load) -> Conflict | None:
    shape, count = load.shape, journey.rows.count if journey.rows else 0
    if isinstance(shape, Open) and not journey.once:
        hint = "write `use: turn`, or add `once`, or load it by `closed: {users: 64}`"
        return Conflict("", f"{name} with a row for each user, and this open load has no users", hint)
    users = journey.users_of(shape.connections) if isinstance(shape, Open) else shape.most_users
    if users <= count:
        return None
    message = f"{name} with a row for each user: {count} rows, and {users} users"
    key = "connections" if isinstance(shape, Open) else "users"
    return Conflict(key, message, "write more rows, or fewer users; or `use: turn`, which repeats rows")
