"""Servers in containers, with the container engine of this machine: their limits, and that nothing is left behind.

Without an engine that can run containers these tests skip. On Debian, podman and runc are enough.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.launching import images
from redline.launching.container_engine import CHOICE, ContainerEngine
from redline.launching.process import ProcessLauncher
from redline.linux import cgroup
from redline.model import Container, Variant
from redline.ports import Launch, Placement, Upstream
from redline.suite import load_catalogue
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.engines import JANITOR_WITHIN_S, left_of_labs, working_engine
from tests.e2e.lab import Lab
from tests.e2e.leftovers import exists_below
from tests.e2e.test_run import measured, run
from tests.fakes.asking import request_status
from tests.fakes.servers.entries import eventually, make_catalogue, server

pytestmark = pytest.mark.e2e

FIRST_CORE = min(os.sched_getaffinity(0))
ONE_CORE = Placement(server_cpus=(FIRST_CORE,))
SMALL = Container(cpus=0.5, memory_bytes=64 << 20, pids=100)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> ContainerEngine:
    """A container engine that works here, or a skip with its reason."""
    return working_engine(tmp_path_factory.mktemp("engine"))


@pytest.fixture
def nothing_left(engine: ContainerEngine) -> Iterator[ContainerEngine]:
    """Check that the test leaves no containers, networks, images and control groups."""
    yield engine
    assert eventually(lambda: not left_of_labs(engine), JANITOR_WITHIN_S), left_of_labs(engine)


@contextlib.contextmanager
def ended(launcher: ProcessLauncher) -> Iterator[ProcessLauncher]:
    """A launcher whose lab ends with the block."""
    try:
        yield launcher
    finally:
        launcher.containers.close()


@pytest.fixture
def launcher(tmp_path: Path, nothing_left: ContainerEngine) -> Iterator[ProcessLauncher]:
    """A launcher of the small servers; set up after `nothing_left`, so that the lab ends before the count."""
    with ended(ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")) as found:
        yield found


def oracle_in(oracle: Path, container: Container) -> Variant:
    variant = server("oracle", command=(str(oracle), "null", "--port", "{port}"))
    entry = variant.catalogued
    ready = entry.ready.model_copy(update={"path": "/ready", "within_ns": 20_000_000_000})
    return Variant(entry=entry.model_copy(update={"ready": ready}), container=container)


def shell_in(script: str, container: Container, *tools: str) -> Variant:
    variant = server("shell", command=("sh", "-c", f"{script}; : {{port}} {' '.join(tools)}"))
    return variant.model_copy(update={"container": container})


def built(launcher: ProcessLauncher, variant: Variant) -> Variant:
    outcome = launcher.build([variant], lambda _building: None)
    assert outcome.hash_of(variant.slug)
    return variant


def failed(launcher: ProcessLauncher, variant: Variant, folder: Path) -> LaunchError:
    with pytest.raises(LaunchError) as caught, launcher.running(Launch(variant, ONE_CORE, folder / "log")):
        pass
    return caught.value


def test_a_server_has_its_core_and_its_limits(oracle: Path, launcher: ProcessLauncher, tmp_path: Path) -> None:
    variant = built(launcher, oracle_in(oracle, SMALL))
    with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log", seed=7)) as running:
        pid = running.facts.pid
        assert request_status("127.0.0.1", running.endpoint.port, "/ready", 5) == 200
        limits = cgroup.read_limits(pid=pid)
        assert (limits.cores, limits.memory_bytes, limits.tasks) == (0.5, 64 << 20, 100)
        assert os.sched_getaffinity(pid) == {FIRST_CORE}
        assert running.facts.padding_bytes > 0
        variables = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"REDLINE_PADDING=x" in variables
        assert Path(f"/proc/{pid}/root{oracle}").stat().st_size == oracle.stat().st_size
        assert len(list(Path(f"/proc/{pid}/root").iterdir())) < 20
        assert not Path(f"/proc/{pid}/root/usr/bin").exists()
        assert running.death() is None
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_of_the_catalogue_is_reached_through_a_published_port(
    nothing_left: ContainerEngine, tmp_path: Path
) -> None:
    folder = CHECKOUT / "catalogue"
    entry = load_catalogue(folder).servers["rust.hyper"]
    options = {name: option.default for name, option in entry.options.items()}
    with ended(ProcessLauncher(folder, CHECKOUT / ".cache")) as launcher:
        for network in ("host", "published"):
            container = Container.model_validate({"network": network})
            variant = built(launcher, Variant(entry=entry, options=options, container=container))
            with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log")) as running:
                assert request_status("127.0.0.1", running.endpoint.port, "/path0", 5) == 200
                own, its = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", running.facts.pid))
                assert (own == its) == (network == "host")
                assert nothing_left.version in running.facts.runtime_version


def test_a_proxy_in_a_container_reaches_a_server_in_another(nothing_left: ContainerEngine, tmp_path: Path) -> None:
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    folder = CHECKOUT / "catalogue"
    servers = load_catalogue(folder).servers
    hyper, nginx = servers["rust.hyper"], servers["proxy.nginx"]
    with ended(ProcessLauncher(folder, CHECKOUT / ".cache")) as launcher:
        published, host = Container(network="published"), Container(cpus=0.5)
        server = built(launcher, Variant(entry=hyper, options={"routes": 1}, container=published))
        hop = built(launcher, Variant(entry=nginx, container=host))
        with launcher.running(Launch(server, ONE_CORE, tmp_path / "log")) as running:
            upstream = Upstream(running.endpoint, "h1", hyper.ready)
            with launcher.running(Launch(hop, ONE_CORE, tmp_path / "hop.log", upstream=upstream)) as front:
                assert request_status("127.0.0.1", front.endpoint.port, "/path0", 5) == 200
                assert front.facts.pid != running.facts.pid


def test_a_server_runs_in_an_image_of_the_user(
    oracle: Path, launcher: ProcessLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    """The image has the libraries, and the build's folder is mounted into it."""
    variant = oracle_in(oracle, Container(image="fixture/libc:1"))
    build = variant.catalogued.catalogue_build.model_copy(update={"run": ("cp", str(oracle), "out")})
    start = variant.catalogued.start.model_copy(update={"command": ("{folder}/out", "null", "--port", "{port}")})
    entry = variant.catalogued.model_copy(update={"build": build, "start": start})
    variant = variant.model_copy(update={"entry": entry})
    refused = launcher.build([variant], lambda _building: None)
    assert refused.unavailable[variant.slug].endswith("there is no image fixture/libc:1 here")
    assert refused.failures[variant.slug].hint == f"get it first: {engine.name} pull fixture/libc:1"
    libraries = [path for path in images.needed(Path("/"), (), [str(oracle)], (), None) if path.name != oracle.name]
    images.pack(libraries, tmp_path / "layer.tar")
    engine.call("import", str(tmp_path / "layer.tar"), "fixture/libc:1")
    try:
        with launcher.running(Launch(built(launcher, variant), ONE_CORE, tmp_path / "log")) as running:
            assert request_status("127.0.0.1", running.endpoint.port, "/ready", 5) == 200
            assert running.facts.command[0] == str(tmp_path / "catalogue/fake/out")
    finally:
        engine.call("rmi", "fixture/libc:1")


def test_a_server_that_hears_itself_alone_cannot_be_published(
    oracle: Path, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    variant = built(launcher, oracle_in(oracle, Container(network="published")))
    ready = variant.catalogued.ready.model_copy(update={"within_ns": 5_000_000_000})
    hurried = variant.model_copy(update={"entry": variant.catalogued.model_copy(update={"ready": ready})})
    assert "listens on 127.0.0.1 alone, which no published port reaches" in str(failed(launcher, hurried, tmp_path))


def test_a_server_that_needs_more_memory_than_it_may_have_says_so(launcher: ProcessLauncher, tmp_path: Path) -> None:
    hungry = shell_in("x=12345678; while :; do x=$x$x; done", Container(memory_bytes=32 << 20))
    built(launcher, hungry)
    assert "was ended by SIGKILL in a container that may use 32.0 MiB of memory" in str(
        failed(launcher, hungry, tmp_path)
    )


def test_a_server_that_ends_reports_its_own_exit_code_and_words(launcher: ProcessLauncher, tmp_path: Path) -> None:
    leaving = built(launcher, shell_in("echo no licence; exit 3", Container()))
    assert re.search("exited with code 3 .* its last words: no licence", str(failed(launcher, leaving, tmp_path)))


def test_a_server_that_dies_under_load_is_seen(oracle: Path, launcher: ProcessLauncher, tmp_path: Path) -> None:
    variant = built(launcher, oracle_in(oracle, Container()))
    with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log")) as running:
        os.kill(running.facts.pid, signal.SIGKILL)
        assert eventually(lambda: running.death() is not None)
        death = running.death()
        assert death is not None
        assert "was ended by SIGKILL while it was under test" in death.message


def wrapped(engine: ContainerEngine, folder: Path, verb: str, instead: str) -> Path:
    """The client, except that a call with this word does something else."""
    file = folder / "podman"
    file.write_text(f'#!/bin/sh\ncase " $* " in *" {verb} "*) {instead} ;; esac\nexec {engine.client} "$@"\n')
    file.chmod(0o755)
    return file


def test_an_image_that_cannot_be_made_skips_its_cells_with_the_reason(
    oracle: Path, engine: ContainerEngine, launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "case \"$*\" in *fake.oracle*) echo 'Error: no space left on device' >&2; exit 125 ;; esac"
    monkeypatch.setenv(CHOICE, str(wrapped(engine, tmp_path, "import", full)))
    variant, plain = oracle_in(oracle, Container()), server()
    outcome = launcher.build([variant, plain], lambda _building: None)
    assert list(outcome.hashes) == [plain.slug]
    reason = "no container for it: `podman import` failed: no space left on device"
    assert outcome.unavailable == {variant.slug: reason}


def test_a_limit_that_the_engine_does_not_set_fails_the_start(
    oracle: Path, engine: ContainerEngine, launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = f"exec {engine.client} $(echo \"$*\" | sed 's/--cpus 0.5//')"
    monkeypatch.setenv(CHOICE, str(wrapped(engine, tmp_path, "run", without)))
    variant = built(launcher, oracle_in(oracle, SMALL))
    said = str(failed(launcher, variant, tmp_path))
    assert "the limit `cpus` of its container should be 0.5, and its control group says None" in said


def test_an_engine_that_hangs_when_a_container_is_started_ends_in_a_message(
    oracle: Path, engine: ContainerEngine, launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.launching.containers._START_WITHIN_S", 1.0)
    hanging = 'case "$*" in *"true") ;; *) sleep 600 ;; esac'
    monkeypatch.setenv(CHOICE, str(wrapped(engine, tmp_path, "run", hanging)))
    variant = built(launcher, oracle_in(oracle, Container(network="published")))
    assert "its container was not started within 1 s" in failed(launcher, variant, tmp_path).problems[0].message


def test_an_engine_that_does_not_remove_a_container_is_named_and_the_server_is_dead(
    oracle: Path, engine: ContainerEngine, launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = tmp_path / "stuck"
    instead = f"[ ! -e {stuck} ] || {{ echo 'Error: device busy' >&2; exit 2; }}"
    monkeypatch.setenv(CHOICE, str(wrapped(engine, tmp_path, "rm", instead)))
    variant = built(launcher, oracle_in(oracle, Container()))
    running = contextlib.ExitStack()
    found = running.enter_context(launcher.running(Launch(variant, ONE_CORE, tmp_path / "log")))
    stuck.touch()
    with pytest.raises(LaunchError, match="could not be removed: `podman rm` failed: device busy"):
        running.close()
    assert eventually(lambda: not Path(f"/proc/{found.facts.pid}").exists())
    stuck.unlink()


@pytest.fixture
def service(engine: ContainerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """podman as a service for the docker client."""
    docker = shutil.which("docker")
    if docker is None or engine.name != "podman":
        pytest.skip("this needs the docker client and podman")
    socket = f"unix://{tmp_path}/podman.sock"
    command = [*engine.command, "system", "service", "--time", "0", socket]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert eventually((tmp_path / "podman.sock").exists)
        monkeypatch.setenv("DOCKER_HOST", socket)
        monkeypatch.setenv(CHOICE, docker)
        yield docker
        process.terminate()


def test_the_docker_client_works_with_the_service_of_podman(
    oracle: Path, nothing_left: ContainerEngine, service: str, tmp_path: Path
) -> None:
    assert ContainerEngine(service).name == "docker"
    with ended(ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")) as launcher:
        variant = built(launcher, oracle_in(oracle, SMALL))
        with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log")) as running:
            assert request_status("127.0.0.1", running.endpoint.port, "/ready", 5) == 200
            assert running.facts.runtime_version.startswith("docker ")


def test_a_suite_compares_a_container_with_a_process(
    oracle: Path, redline: Redline, nothing_left: ContainerEngine
) -> None:
    """The server is throttled by its own quota, which is a finding of that cell alone."""
    servers = "{use: good.one, in: [process, container]}, {use: good.one, in: container, container: {cpus: 0.1}}"
    suite = Lab(redline.folder, oracle).suite(servers, more="baseline: good.one")
    _, report = run(redline, suite)
    assert measured(redline, report) == ["good.one", "good.one+container", "good.one+container-cpus=0.1"]
    kinds = {cell.server: {finding.kind for finding in cell.findings} for cell in report.cells}
    assert "throttled" in kinds["good.one+container-cpus=0.1"]
    assert "throttled" not in kinds["good.one"]
    assert {effect.axis for effect in report.effects} >= {"in"}


@pytest.mark.parametrize(("number", "network"), [(signal.SIGKILL, "published"), (signal.SIGINT, "host")])
def test_a_lab_that_is_ended_leaves_nothing(
    number: int, network: str, oracle: Path, redline: Redline, nothing_left: ContainerEngine
) -> None:
    """With a published port the server does not become ready, so the lab is ended while it waits."""
    servers = f"{{use: good.one, in: container, container: {{network: {network}}}}}"
    suite = Lab(redline.folder, oracle).suite(servers, trials=50)
    with redline.start("run", suite, "-o", redline.folder / "out") as process:
        deadline = time.monotonic() + 120
        running = ("ps", "--quiet", "--filter", f"name=redline-{process.pid}-")
        while not exists_below(redline.folder / "out", "server.log") or not nothing_left.call(*running):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=120)
