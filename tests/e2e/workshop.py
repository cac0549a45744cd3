"""The servers of the catalogue, built and started by the lab's launcher, for the tests of their contracts."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching.process import ProcessLauncher, ProcessServer
from redline.launching.route import RouteLauncher
from redline.model import Cell, OptionValue, ServerEntry, Variant
from redline.ports import Launch, Placement, RunningServer
from redline.suite import load_catalogue

CHECKOUT = Path(__file__).parents[2]
CATALOGUE = CHECKOUT / "catalogue"
CEILING = "oracle.null"
UNRESOLVED = {"pekko.tapir", "play.tapir", "http4s.blaze-tapir", "quarkus.petstore@3.40"} | {
    f"clojure.{name}" for name in ("httpkit", "jetty", "aleph", "pohjavirta", "undertow")
}  # not every mirror has what they need
RELEASES = (11, 17, 21, 25)
"""A release of the JDK that the lab can fetch."""
NOT_RESOLVED = ("could not be resolved", "Could not resolve dependencies")


@cache
def entries() -> dict[str, ServerEntry]:
    """The servers of the catalogue by name, and versions that have builds of their own; reading takes a second."""
    servers = load_catalogue(CATALOGUE).servers
    builds = {name: entry.build for name, entry in servers.items()}
    return {name: entry for name, entry in servers.items() if name == _own(name) or entry.build != builds[_own(name)]}


def _own(name: str) -> str:
    """The name of the server that a name such as `vertx.vanilla@5` has a version of."""
    return name.partition("@")[0]


def marked(entry: ServerEntry) -> object:
    """The server as a parameter of a test; its build tool decides when the test runs."""
    runtime = [pytest.mark.jvm, pytest.mark.long] if entry.runtime == "jvm" else []  # sbt takes minutes to build them
    return pytest.param(entry, id=entry.name, marks=runtime)


def if_provided(release: int, here: Collection[int]) -> list[pytest.MarkDecorator]:
    """The mark of a test of a JDK release, which says how to get a release that is missing; none for others."""
    if release in here or str(release) in os.environ.get("REDLINE_TEST_JDKS", "").split(","):
        return []
    return [pytest.mark.skip(f"there is no JDK {release} here; REDLINE_TEST_JDKS={release} lets the lab fetch it")]


def excused(entry: ServerEntry, failed: BuildError) -> bool:
    """Whether this server is known not to build here, through no fault of the catalogue. All others must build."""
    return entry.name in UNRESOLVED and any(words in str(failed) for words in NOT_RESOLVED)


def variant_of(entry: ServerEntry, **options: OptionValue) -> Variant:
    """The server with its defaults but for `options`."""
    defaults = {name: option.default for name, option in entry.options.items()}
    return Variant(entry=entry, options={**defaults, **options})


@dataclass(frozen=True)
class Workshop:
    """The lab's launcher, after it has built all that it can; by name of a server, why that could not be built."""

    launcher: ProcessLauncher
    failures: dict[str, BuildError]


@pytest.fixture(scope="session")
def workshop(request: pytest.FixtureRequest) -> Workshop:
    """Everything that the tests of this session need is built together: failing builds would otherwise be repeated."""
    launcher = ProcessLauncher(CATALOGUE, CHECKOUT / ".cache")
    needed = {CEILING, *(name for item in request.session.items for name in _servers(item))}
    known = [variant_of(entry) for entry in entries().values() if entry.name in needed]
    variants = [each for each in known if launcher.availability(each.catalogued).state != "cannot be built"]
    failures = launcher.build(variants, print).failures
    return Workshop(launcher, {each.entry.name: failures[each.slug] for each in variants if each.slug in failures})


def _servers(item: pytest.Item) -> list[str]:
    """The names of the servers and proxies among a test's parameters."""
    params = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    variants = [param.variant for param in params if isinstance(param, Cell)]
    in_cells = [each.entry.name for variant in variants for each in (variant, *variant.hops)]
    return in_cells + [param.name for param in params if isinstance(param, ServerEntry)]


@contextmanager
def started(workshop: Workshop, variant: Variant, folder: Path) -> Iterator[ProcessServer]:
    """The server by itself; skips with the reason if it cannot be built."""
    check_built(workshop, variant)
    with workshop.launcher.running(Launch(variant, Placement(), folder / "server.log")) as server:
        yield server
        assert server.death() is None


@contextmanager
def routed(workshop: Workshop, variant: Variant, folder: Path) -> Iterator[RunningServer]:
    """The server behind its proxies; skips with the reason if one of them cannot be built."""
    check_built(workshop, variant)
    with RouteLauncher(workshop.launcher).running(Launch(variant, Placement(), folder / "server.log")) as server:
        yield server
        assert server.death() is None


def check_built(workshop: Workshop, variant: Variant) -> None:
    """Skip the test if a server or proxy cannot be built here; raise the error if it should have been built."""
    for each in (variant, *variant.hops):
        entry = each.catalogued
        available = workshop.launcher.availability(entry)
        if available.state == "cannot be built":
            pytest.skip(f"{entry.name}: {available.reason}")
        failed = workshop.failures.get(entry.name)
        if failed is not None:
            if excused(entry, failed):
                pytest.skip(str(failed))
            raise failed
