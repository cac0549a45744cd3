"""Journeys: the steps that a user takes in order, the values taken from answers, and the rows of data."""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from redline.errors import WrongValueError
from redline.model.base import Frozen, omitted_if_default
from redline.model.load import Think

MOST_ROWS = 100_000
_LONGEST_FIELD = 1 << 20
RowUse = Literal["user", "turn", "unique"]


class TakenValue(Frozen):
    """A value that a step takes from its answer, for `{take:NAME}` in later steps: from exactly one source."""

    name: str
    from_json: str | None = omitted_if_default(None, "a JSON Pointer (RFC 6901)")
    from_header: str | None = omitted_if_default(None, "the name of a header")
    from_cookie: str | None = omitted_if_default(None, "the name of a cookie that the answer sets")
    from_regex: str | None = omitted_if_default(None, "a regular expression; its first group, or all that matches")
    from_text: str | None = omitted_if_default(None, "a JSON Pointer into messages, whose strings are one text")

    @model_validator(mode="after")
    def _one_source(self) -> "TakenValue":
        if len(self.sources) != 1:
            raise ValueError(f"`{self.name}` is taken from {len(self.sources)} sources, not from one")
        return self

    @property
    def sources(self) -> dict[str, str]:
        """The source, by its kind: `json`, `header`, `cookie`, `regex` or `text`."""
        by_kind = {
            "json": self.from_json,
            "header": self.from_header,
            "cookie": self.from_cookie,
            "regex": self.from_regex,
            "text": self.from_text,
        }
        return {kind: source for kind, source in by_kind.items() if source is not None}


class StepCondition(Frozen):
    """An earlier step of the same list, counted from 0, and the statuses at which a step is sent."""

    step: int = Field(ge=0)
    statuses: tuple[int, ...] = Field(min_length=1)


class JourneyStep(Frozen):
    """What a step has besides its request: the pause before it, its condition, and what it takes."""

    think: Think | None = omitted_if_default(None, "the time from the answer before")
    when: StepCondition | None = omitted_if_default(None, "sent only then; default: always")
    take: tuple[TakenValue, ...] = omitted_if_default(())


class Rows(Frozen):
    """Rows of a CSV file, without their values, which are read for each load: they may be secrets."""

    file: str
    columns: tuple[str, ...] = Field(description="the columns that requests use, in the order of the file")
    count: int = Field(ge=1)
    use: RowUse = "turn"
    secret: tuple[str, ...] = omitted_if_default((), "those of the columns whose names are secrets'")
    sha256: str = Field(description="of the rows, without the secret columns, in hex")

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that are no secrets."""
        return tuple(name for name in self.columns if name not in self.secret)


class Journey(Frozen):
    """The steps of a scenario, whose requests are those of `once` and then those of `steps`.

    A user takes `steps` again and again, and those of `once` a single time before. After an answer with a status of
    `again_at` it takes `once` again, and then the step. Every user has its own cookies, unless `cookies` is false.
    """

    once: tuple[JourneyStep, ...] = omitted_if_default(())
    again_at: tuple[int, ...] = omitted_if_default(())
    steps: tuple[JourneyStep, ...] = Field(min_length=1)
    rows: Rows | None = omitted_if_default(None)
    cookies: bool = omitted_if_default(default=True)
    users: int | None = omitted_if_default(None, "of an open load with `once`; default: its connections", ge=1)

    @property
    def gathers(self) -> bool:
        """Whether a step carries the text of a conversation on, which therefore is followed to its end."""
        return any(value.from_text is not None for step in (*self.once, *self.steps) for value in step.take)

    @property
    def pauses(self) -> bool:
        """Whether users think between its steps."""
        return any(step.think is not None for step in self.steps)

    def users_of(self, connections: int) -> int:
        """How many users take the journeys of an open load that has so many connections."""
        return connections if self.users is None else self.users


class RowTable(NamedTuple):
    """The header and the rows of a CSV file, with the line of each row, from 1."""

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


class TableError(WrongValueError):
    """A CSV file with a mistake, which is never quoted: `line` counts from 1."""

    def __init__(self, line: int, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.line = line


def read_table(text: str) -> RowTable:
    """Parse a CSV file (RFC 4180) whose first line names the columns; empty lines are left out. Raises TableError."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns, values, lines = tuple[str, ...](), list[tuple[str, ...]](), list[int]()
    try:
        for row in reader:
            if not row:
                continue
            if not columns:
                columns = _named_columns(row, reader.line_num)
            elif len(row) != len(columns):
                message = f"this row has {len(row)} values, and the first line names {len(columns)} columns"
                raise TableError(reader.line_num, message, "quote values with commas in them")
            elif len(values) == MOST_ROWS:
                message = f"there are more than {MOST_ROWS} rows"
                raise TableError(reader.line_num, message, "take a part of them")
            else:
                values.append(tuple(row))
                lines.append(reader.line_num)
    except csv.Error:
        message = "this is not CSV: a quote does not end where its value does, or a value is longer than 1 MiB"
        raise TableError(reader.line_num, message, 'write a quote within quotes as `""`') from None
    if not values:
        message = "there is no row" if columns else "the file is empty"
        raise TableError(1, message, "name the columns in the first line, and write a row into each further line")
    return RowTable(columns, tuple(values), tuple(lines))


def _named_columns(row: Sequence[str], line: int) -> tuple[str, ...]:
    columns = tuple(name.strip() for name in row)
    if twice := next((name for at, name in enumerate(columns) if name in columns[:at]), None):
        raise TableError(line, f"the column `{twice[:40]}` is named twice", "the first line names the columns")
    return columns


def columns_of(table: RowTable, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The values of some columns of a table, row by row. Raises ValueError for an unknown column."""
    places = [table.columns.index(name) for name in columns]
    return tuple(tuple(row[place] for place in places) for row in table.values)


def sha256_of_rows(values: Sequence[Sequence[str]]) -> str:
    """The SHA-256 of rows, in hex."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
