"""Services that stay up between starts: which starts share them, and when they start again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from redline.errors import LaunchError
from redline.launching.compose_file import OwnStart, read_config
from redline.launching.compose_project import Composed, ComposeProject
from redline.launching.compose_provider import Provider
from redline.launching.compose_standing import StandingServices
from redline.model import ServerEntry, Start, Variant
from redline.model.catalogue import ComposeService
from redline.ports import Launch, Placement

SERVICE = ComposeService(file="compose.yaml", service="web", port=80, fresh="service")


def launch_of(name: str, place: int = 0, cpus: tuple[int, ...] = ()) -> Launch:
    """A start of a server by its service."""
    entry = ServerEntry(name=name, about="", runtime="", family_folder=".", compose=SERVICE, start=Start(command=()))
    return Launch(Variant(entry=entry), Placement(server_cpus=cpus), Path("log"), place=place)


class Services:
    """A project of services that stay up, as those who keep it see it."""

    def __init__(self, cpus: tuple[int, ...], seen: list[str]) -> None:
        self.cpus, self.seen, self.has_failed = cpus, seen, False

    def start_services(self) -> None:
        self.seen.append("start")

    def check_services(self) -> None:
        if self.has_failed:
            raise LaunchError("db has ended", hint="see why")

    def close(self) -> None:
        self.seen.append("close")


class Kept:
    """Services that stay up, and what was done with them."""

    def __init__(self) -> None:
        self.standing, self.seen = StandingServices(), list[str]()

    def of(self, launch: Launch) -> Services:
        def make(_folder: Path) -> ComposeProject:
            return cast("ComposeProject", Services(launch.placement.server_cpus, self.seen))

        return cast("Services", self.standing.of(launch, SERVICE, make))


@contextmanager
def kept() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.standing.close()
    assert made.seen.count("start") == made.seen.count("close")


def test_starts_of_a_server_at_a_place_share_them_and_no_others_do() -> None:
    with kept() as made:
        first = made.of(launch_of("a"))
        assert made.of(launch_of("a")) is first
        others = [made.of(launch_of("a", place=1)), made.of(launch_of("b"))]
        assert len({id(services) for services in (first, *others)}) == 3


def test_they_start_again_for_other_cores_and_after_one_has_ended() -> None:
    with kept() as made:
        first = made.of(launch_of("a", cpus=(0,)))
        second = made.of(launch_of("a", cpus=(1,)))
        assert (second is first, made.seen) == (False, ["start", "close", "start"])
        second.has_failed = True
        with pytest.raises(LaunchError, match="db has ended"):
            made.of(launch_of("a", cpus=(1,)))
        assert made.of(launch_of("a", cpus=(1,))) is not second


class Engine:
    """A container engine whose containers of two services are in a state."""

    name, command = "podman", ("true",)

    def __init__(self) -> None:
        self.states = {"db": ("running", 0), "seed": ("running", 0)}

    def call(self, *words: str) -> str:
        if words[0] == "ps":
            return "\n".join(self.states)
        return json.dumps(
            [
                {
                    "Id": name,
                    "Name": name,
                    "State": {"Status": status, "ExitCode": code, "Pid": 0},
                    "Config": {"Labels": {"com.docker.compose.service": name}},
                }
                for name, (status, code) in self.states.items()
            ]
        )


@pytest.mark.parametrize(
    ("service", "code", "fails"), [("seed", 0, False), ("seed", 1, True), ("db", 0, True), ("db", 137, True)]
)
def test_only_a_service_that_nobody_needs_may_end_and_only_successfully(
    service: str, code: int, fails: bool, tmp_path: Path
) -> None:
    engine = Engine()
    file = read_config(
        "services:\n  web: {image: web, depends_on: [db]}\n  db: {image: db}\n  seed: {image: seed, depends_on: [db]}\n"
    )
    provider = cast("Provider", SimpleNamespace(engine=engine, call=lambda *_: ""))
    composed = Composed(provider, file, tmp_path / "compose.yaml", {}, "", "")
    start = OwnStart("redline-1", {}, "web", 1, 80, {})
    launch = replace(launch_of("a"), log=tmp_path / "log")
    project = ComposeProject(launch, composed, start, tmp_path, ("db", "seed"))
    project.start_services()
    project.check_services()
    engine.states[service] = ("exited", code)
    if fails:
        with pytest.raises(LaunchError, match=f"the service {service} of compose.yaml, which runs through all starts"):
            project.check_services()
    else:
        project.check_services()
