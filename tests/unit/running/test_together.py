"""Servers in containers start and stop at the same time; what one cannot do ends the others."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import pytest

from redline.errors import LaunchError
from redline.model import ServerEntry, Start, Variant
from redline.model.catalogue import OwnImage
from redline.ports import Launch, Launcher, Placement, RunningServer
from redline.running.together import launched
from redline.wording import Call, asked_by, part

WITHIN_S = 20.0


class Containers:
    """A launcher that does `at_start` with the name of a server, and notes what starts and stops."""

    def __init__(self, at_start: Callable[[Launch], object] = lambda _launch: None) -> None:
        self.at_start, self.seen = at_start, list[str]()
        self.at_stop: Callable[[str], object] = lambda _name: None

    @contextmanager
    def running(self, launch: Launch) -> Iterator[RunningServer]:
        name = launch.variant.slug
        self.at_start(launch)
        self.seen.append(f"+{name}")
        try:
            yield cast("RunningServer", name)
        finally:
            self.at_stop(name)
            self.seen.append(f"-{name}")


def server(name: str, *, boxed: bool = True) -> Launch:
    image = OwnImage(name="shop:1") if boxed else None
    command = () if boxed else ("./shop",)
    entry = ServerEntry(name=name, about="", runtime="", family_folder=".", image=image, start=Start(command=command))
    return Launch(Variant(entry=entry), Placement(), Path("log"))


def start(launcher: Containers, running: ExitStack, *launches: Launch) -> list[str]:
    """Start them; a running server is its name here."""
    return [str(server) for server in launched(cast("Launcher", launcher), launches, running)]


def test_containers_start_and_stop_at_the_same_time() -> None:
    """None is ready before all have begun, and none has stopped before all do."""
    all_ = threading.Barrier(3)
    launcher = Containers(lambda _launch: all_.wait(WITHIN_S))
    launcher.at_stop = lambda _name: all_.wait(WITHIN_S)
    with ExitStack() as running:
        assert start(launcher, running, *map(server, "abc")) == ["a", "b", "c"]
        assert sorted(launcher.seen) == ["+a", "+b", "+c"]
    assert sorted(launcher.seen[3:]) == ["-a", "-b", "-c"]


def test_commands_start_after_them_and_one_after_the_other() -> None:
    launcher, alone = Containers(), Containers()
    with ExitStack() as running:
        servers = start(launcher, running, server("x", boxed=False), server("a"), server("y", boxed=False), server("b"))
        assert servers == ["x", "a", "y", "b"]
        assert sorted(launcher.seen[:2]) == ["+a", "+b"]
        assert launcher.seen[2:] == ["+x", "+y"]
    with ExitStack() as running:
        start(alone, running, server("a"), server("x", boxed=False))
        assert alone.seen == ["+a", "+x"]


def test_the_first_that_fails_gives_up_those_that_wait_and_stops_those_that_run() -> None:
    ready = threading.Event()

    def at_start(launch: Launch) -> None:
        if launch.variant.slug == "b":
            assert ready.wait(WITHIN_S)
            raise LaunchError("b does not start", hint="mend it")
        while launch.variant.slug == "c":
            launch.check_wanted()
            time.sleep(0.01)
        ready.set()

    launcher = Containers(at_start)
    with pytest.raises(LaunchError, match="b does not start"), ExitStack() as running:
        start(launcher, running, *map(server, "abc"))
    assert launcher.seen == ["+a", "-a"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also in a shell's background job, whose SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_messages_of_its_threads_are_in_the_words_of_whoever_asks() -> None:
    def refuse(_launch: Launch) -> None:
        raise LaunchError("no", hint=f"give {part('budget', '10x')}")

    with asked_by(Call()), ExitStack() as running, pytest.raises(LaunchError) as refused:
        start(Containers(refuse), running, server("a"), server("b"))
    assert refused.value.hint == "give budget='10x'"


def test_an_interrupt_gives_up_all_that_start() -> None:
    begun = threading.Barrier(3)

    def at_start(launch: Launch) -> None:
        begun.wait(WITHIN_S)
        while True:
            launch.check_wanted()
            time.sleep(0.01)

    launcher = Containers(at_start)
    main = threading.get_ident()

    def interrupt() -> None:
        begun.wait(WITHIN_S)
        signal.pthread_kill(main, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt), ExitStack() as running:
        start(launcher, running, server("a"), server("b"))
    interrupting.join()
    assert launcher.seen == []


def test_what_cannot_be_stopped_is_said_once_the_others_have_stopped() -> None:
    def at_stop(name: str) -> None:
        if name == "a":
            raise LaunchError("a could not be removed", hint="remove it")
        time.sleep(0.05)

    launcher = Containers()
    launcher.at_stop = at_stop
    with pytest.raises(LaunchError, match="a could not be removed"), ExitStack() as running:
        start(launcher, running, server("a"), server("b"))
    assert launcher.seen[2:] == ["-b"]
