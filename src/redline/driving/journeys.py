"""A scenario's journey in the engine's protocol, with its rows, which are read for each load."""

from pathlib import Path
from typing import Any

from redline.errors import DriveError
from redline.model import JourneyStep, Load, Open, Rows, Scenario, Think
from redline.model.journey import TableError, columns_of, read_table, sha256_of_rows


def with_values(**keys: Any) -> dict[str, Any]:
    """Return the keys that have a value, for JSON."""
    return {key: value for key, value in keys.items() if value is not None}


def journey_keys(
    scenario: Scenario, load: Load | None = None, rows: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the steps of a scenario's journey; None without a journey. Raises DriveError.

    Its rows are read now, unless they are given: their file may be on another host. Without a load the keys are for the
    check before a load.
    """
    journey = scenario.journey
    if journey is None:
        return None
    has_users = load is not None and isinstance(load.shape, Open) and bool(journey.once)
    return with_values(
        once=[_step(at, step) for at, step in enumerate(journey.once)],
        again_at=list(journey.again_at),
        steps=[_step(at, step) for at, step in enumerate(journey.steps, start=len(journey.once))],
        rows=rows or (rows_of_check(scenario) if load is None else _rows_of_load(journey.rows)),
        cookies=journey.cookies,
        users=journey.users if has_users else None,
    )


def _step(request: int, step: JourneyStep) -> dict[str, Any]:
    return with_values(
        request=request,
        think=step.think and think_keys(step.think),
        when=step.when and {"step": step.when.step, "status": list(step.when.statuses)},
        take=[{"name": value.name, "from": value.sources} for value in step.take],
    )


def rows_of_check(scenario: Scenario) -> dict[str, Any] | None:
    """Read the row of the check before a load; None for a scenario without rows. Raises DriveError.

    It is the last of rows that are taken once, which the load leaves out, and else the first.
    """
    rows = scenario.journey and scenario.journey.rows
    if not rows:
        return None
    values = _read(rows)
    return _keys(rows, values[-1:] if rows.use == "unique" else values[:1])


def _rows_of_load(rows: Rows | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    values = _read(rows)
    return _keys(rows, values[:-1] if rows.use == "unique" else values)


def _keys(rows: Rows, values: list[list[str]]) -> dict[str, Any]:
    return {"columns": list(rows.columns), "values": values, "use": rows.use}


def _read(rows: Rows) -> list[list[str]]:
    """Read rows, which no recording holds. Raises DriveError if they are not those that were planned."""
    again = "begin anew: what is measured belongs to one set of rows"
    try:
        table = read_table(Path(rows.file).read_bytes().decode("utf-8-sig"))
        values = columns_of(table, rows.columns)
        shown = columns_of(table, rows.shown)
    except (OSError, UnicodeDecodeError) as error:
        raise DriveError(
            f"the rows in {rows.file} cannot be read: {error}", hint="they are read for each load"
        ) from error
    except TableError as error:
        raise DriveError(f"{rows.file}, line {error.line}: {error.message}", hint=error.hint) from error
    except ValueError:
        raise DriveError(f"{rows.file} has other columns than when this was planned", hint=again) from None
    if len(values) != rows.count or sha256_of_rows(shown) != rows.sha256:
        raise DriveError(f"{rows.file} has other rows than when this was planned", hint=again)
    return [list(row) for row in values]


def think_keys(think: Think) -> dict[str, int]:
    """Return a think time, for JSON."""
    return {"fixed_ns" if think.distribution == "fixed" else "exponential_ns": think.mean_ns}
