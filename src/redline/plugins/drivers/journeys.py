"""A scenario's journey in the engine's protocol, with its rows, which are read for each load."""

from pathlib import Path
from typing import Any

from redline.errors import DriveError
from redline.model import JourneyStep, Load, Open, Rows, Scenario, Think
from redline.model.journey import TableError, columns_of, read_table, sha256_of_rows


def with_values(**keys: Any) -> dict[str, Any]:
    """Return the keys that have a value, for JSON."""
    return {key: value for key, value in keys.items() if value is not None}


def journey_keys(scenario: Scenario, load: Load | None = None) -> dict[str, Any] | None:
    """Return the steps of a scenario's journey, whose rows are read now; None without a journey. Raises DriveError.

    Without a load they are for the check before one. It takes the last of rows that are taken once, the load the rest.
    """
    journey = scenario.journey
    if journey is None:
        return None
    has_users = load is not None and isinstance(load.shape, Open) and bool(journey.once)
    return with_values(
        once=[_step(at, step) for at, step in enumerate(journey.once)],
        again_at=list(journey.again_at),
        steps=[_step(at, step) for at, step in enumerate(journey.steps, start=len(journey.once))],
        rows=None if journey.rows is None else _rows(journey.rows, is_check=load is None),
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


def _rows(rows: Rows, *, is_check: bool) -> dict[str, Any]:
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
    if rows.use == "unique":
        values = values[-1:] if is_check else values[:-1]
    return {"columns": list(rows.columns), "values": [list(row) for row in values], "use": rows.use}


def think_keys(think: Think) -> dict[str, int]:
    """Return a think time, for JSON."""
    return {"fixed_ns" if think.distribution == "fixed" else "exponential_ns": think.mean_ns}
