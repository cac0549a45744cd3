"""`--wait` and `--alone`: what a command does about other measurements on this machine, and says of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from rich.console import Console
from rich.text import Text

from redline.asking.naming import naming
from redline.cli.show import OneLine
from redline.errors import UsageError
from redline.quantities import duration, parse_duration
from redline.running.turns import AT_ONCE, TurnOptions, Waiting, listed, measuring
from redline.watching.measurements import Measurement
from redline.wording import part


def turn_of(
    command: str, console: Console, wait: str | None, *, alone: bool, on: str | None = None
) -> Callable[[], AbstractContextManager[None]]:
    """What a measurement holds while it lasts: it is known to others, waits for them or refuses, as is asked.

    Other measurements see `command`. A measurement `on` other hosts takes no turn on this one. Raises UsageError.
    """
    with naming(part("wait")):
        wait_s = None if wait is None else parse_duration(wait) / 1e9
    if on is None:
        return partial(in_turn, command, console, TurnOptions(wait_s, alone))
    if wait_s is not None or alone:
        asked = part("alone" if alone else "wait")
        message = asked + " is about this machine, and " + part("on") + " measures on others"
        raise UsageError(message, hint="leave out one of the two")
    return nullcontext


@contextmanager
def in_turn(command: str, console: Console, turn: TurnOptions = AT_ONCE) -> Iterator[None]:
    """Measure for a block, once it is its turn; other measurements are printed. Raises UsageError."""
    with ExitStack() as held:
        with OneLine(console) as line:
            said = set[str]()

            def waiting(now: Waiting) -> None:
                text = f"waiting until nothing else measures on this machine: {listed(now.others)}"
                if text not in said and not line.is_live:
                    line.print(Text(text))
                said.add(text)
                line.say(Text(f"{text}; {now.waited_s:.0f} s of at most {duration(now.at_most_s * 1e9)}"))

            held.enter_context(measuring(command, turn, partial(_say_beside, console), waiting))
        yield


def _say_beside(console: Console, others: tuple[Measurement, ...]) -> None:
    """Say what measures already, and which of it should be alone."""
    disturbs = ", and should be alone" if any(it.state == "alone" for it in others) else ""
    text = (
        f"{listed(others)} measures on this machine too{disturbs}: each changes the other's numbers; see {part('wait')}"
    )
    console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)
