"""A panel stands at the end of a terminal's output, changes in place, and leaves nothing behind."""

import io
import threading

import pytest
from rich.console import Console
from rich.text import Text

from redline.cli import interrupts, panel
from redline.cli.panel import Frame, Panel, fitted, is_live
from redline.cli.show import OneLine, insist
from tests.fakes.screens import FakeTerminal


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def frame(*lines: str) -> Frame:
    return lambda _console: [Text(line) for line in lines]


def test_a_panel_is_painted_in_place_and_is_gone_at_the_end() -> None:
    terminal = FakeTerminal()
    terminal.console.print("before")
    with Panel(terminal.console) as shown:
        shown.show(frame("one", "two", "three"), now=True)
        assert terminal.shown == ["before", "one", "two", "three"]
        assert (terminal.screen.cursor.y, terminal.screen.cursor.x) == (1, 0)
        shown.show(frame("1", "2"), now=True)
        assert terminal.shown == ["before", "1", "2"]
    assert terminal.shown == ["before"]
    terminal.console.print("the answer")
    assert terminal.shown == ["before", "the answer"]


def test_what_is_printed_stays_above_it() -> None:
    terminal = FakeTerminal()
    with Panel(terminal.console) as shown:
        shown.print(Text("early"))
        shown.show(frame("panel", "of two lines"), now=True)
        shown.print(Text("a finding\nof two lines"))
        assert terminal.shown == ["early", "a finding", "of two lines", "panel", "of two lines"]
    assert terminal.shown == ["early", "a finding", "of two lines"]


def test_it_is_painted_twice_a_second_at_most() -> None:
    terminal, clock = FakeTerminal(), Clock()
    asked: list[int] = []

    def counted(_console: Console) -> list[Text]:
        asked.append(1)
        return [Text(f"frame {len(asked)}")]

    with Panel(terminal.console, clock=clock) as shown:
        for at in range(100):
            clock.now_s = at / 10
            shown.show(counted)
    assert len(asked) == 20


def test_a_terminal_that_becomes_narrower_or_wider_loses_nothing_and_keeps_nothing() -> None:
    terminal = FakeTerminal(80)
    terminal.console.print("before")
    with Panel(terminal.console) as shown:
        wide = frame("x" * 79, "y" * 70, "z")
        shown.show(wide, now=True)
        for columns in (40, 25, 100):
            terminal.fold(columns)
            shown.show(wide, now=True)
            assert [line[:4] for line in terminal.shown] == ["befo", "xxxx", "yyyy", "z"]
            assert max(map(len, terminal.shown)) < columns
    assert terminal.shown == ["before"]


def test_a_panel_is_no_higher_than_its_terminal() -> None:
    terminal = FakeTerminal(80, 5)
    with Panel(terminal.console) as shown:
        for _ in range(3):
            shown.show(frame(*map(str, range(9))), now=True)
            assert terminal.shown == ["0", "1", "2", "3"]
    assert terminal.shown == [""]


@pytest.mark.parametrize(
    "console",
    [
        Console(file=io.StringIO(), force_terminal=True),
        Console(file=io.StringIO()),
        FakeTerminal(TERM="dumb").console,
    ],
)
def test_elsewhere_there_is_nothing_but_what_is_printed(console: Console) -> None:
    assert not is_live(console)
    with Panel(console, on_interrupt="never said") as shown:
        shown.show(frame("panel"), now=True)
        assert not interrupts.listeners
        shown.print(Text("news"))
    with OneLine(console) as line:
        line.say(Text("progress"))
    file = console.file
    written = file.shown if isinstance(file, FakeTerminal) else file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert written == ["news"]


def test_a_terminal_without_colours_has_a_panel_without_colours() -> None:
    terminal = FakeTerminal(NO_COLOR="1")
    with Panel(terminal.console) as shown:
        shown.show(lambda _console: [Text("red", style="red")], now=True)
        assert terminal.shown == ["red"]
        assert terminal.screen.buffer[0][0].fg == "default"


def test_the_first_interrupt_is_answered_above_it() -> None:
    terminal = FakeTerminal()
    with Panel(terminal.console, on_interrupt="ending early") as shown:
        shown.show(frame("panel"), now=True)
        (told,) = interrupts.listeners
        terminal.write("^C")
        told()
        assert terminal.shown == ["ending early", "panel"]
    assert interrupts.listeners == []
    assert terminal.shown == ["ending early"]


def test_an_interrupt_within_a_paint_is_answered_by_the_next() -> None:
    terminal = FakeTerminal()

    def interrupted(_console: Console) -> list[Text]:
        interrupts.listeners[0]()
        return [Text("panel")]

    with Panel(terminal.console, on_interrupt="ending early") as shown:
        shown.show(interrupted, now=True)
        assert terminal.shown == ["panel"]
        shown.show(frame("panel"), now=True)
        assert terminal.shown == ["ending early", "panel"]


def test_a_lock_that_an_interrupt_left_behind_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "_LONGEST_WAIT_S", 0.01)
    terminal = FakeTerminal()
    with Panel(terminal.console) as shown:
        shown.show(frame("panel"), now=True)
        shown._lock.acquire()
    assert terminal.shown == [""]


def test_threads_do_not_paint_into_each_other() -> None:
    terminal = FakeTerminal()
    with Panel(terminal.console) as shown:

        def prints(at: int) -> None:
            for _ in range(3):
                shown.print(Text(f"{at}" * 20))

        threads = [threading.Thread(target=prints, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            shown.show(frame("panel", "line"), now=True)
        for thread in threads:
            thread.join()
        shown.show(frame("panel", "line"), now=True)
        printed = [line for line in terminal.shown if line not in ("panel", "line")]
        assert sorted(printed) == sorted(f"{at}" * 20 for at in range(4) for _ in range(3))
        assert terminal.shown[-2:] == ["panel", "line"]


@pytest.mark.parametrize("width", [10, 20, 30, 60])
def test_a_number_is_shown_whole_or_not_at_all(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    parts = ("18.3 k/s", "p50 1.20 ms", "p99 8.30 ms")
    made = fitted(console, *((part, "") for part in parts), rest="a name that may be cut").plain
    assert len(made) <= width - 1 or "a name" in made
    shown = [part for part in made.split("  ") if not part.startswith("a name")]
    assert shown == [part for part in parts if part in shown]
    assert shown[0] == parts[0]


def test_in_a_log_a_line_says_now_and_then_how_far_it_is() -> None:
    output, clock = io.StringIO(), Clock()
    with Panel(Console(file=output, width=60), clock=clock) as shown:
        for second in range(31):
            clock.now_s = float(second)
            shown.show(frame(f"measure  {30 - second} s left", "20.1 k/s  p99 1.20 ms", "a histogram"), now=True)
            if second == 22:
                shown.print(Text("a finding"))
    assert output.getvalue().splitlines() == [
        "measure  20 s left  20.1 k/s  p99 1.20 ms",
        "measure  10 s left  20.1 k/s  p99 1.20 ms",
        "a finding",
    ]


def test_in_a_narrow_log_no_number_is_cut() -> None:
    output, clock = io.StringIO(), Clock()
    with Panel(Console(file=output, width=30), clock=clock) as shown:
        clock.now_s = 11
        shown.show(frame("measure  20 s left", "20.1 k/s  p99 1.20 ms"))
    assert output.getvalue().splitlines() == ["measure  20 s left", "    20.1 k/s  p99 1.20 ms"]


def test_a_log_of_ci_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_live(FakeTerminal().console)
    monkeypatch.setenv("CI", "true")
    assert not is_live(FakeTerminal().console)


def test_a_quiet_console_shows_no_progress_and_all_errors() -> None:
    output, clock = io.StringIO(), Clock()
    console = Console(file=output, quiet=True)
    with Panel(console, clock=clock) as shown:
        clock.now_s = 60
        shown.show(frame("1 of 2"), now=True)
        shown.print(Text("a finding"))
    insist(console, "cannot build it")
    console.print("the end")
    assert output.getvalue() == "cannot build it\n"


def test_an_interrupt_before_anything_was_measured_says_so() -> None:
    class Early(Panel):
        @property
        def has_answer(self) -> bool:
            return False

    terminal = FakeTerminal()
    with Early(terminal.console, on_interrupt="ending early") as shown:
        shown.show(frame("panel"), now=True)
        for told in interrupts.listeners:
            told()
    assert terminal.shown == ["nothing has been measured yet: stopping without an answer"]
