"""A user's images and compose files as servers, with the container engine of this machine: nothing is left behind.

Without an engine these tests skip, and those of compose files also without `docker compose` or podman-compose.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from redline.errors import LaunchError
from redline.launching import images
from redline.launching.compose import ComposeLauncher
from redline.launching.compose_provider import find_provider
from redline.launching.container_engine import ContainerEngine, ContainerEngineError
from redline.launching.containers import Containers
from redline.launching.own_images import ImageLauncher
from redline.linux.cgroup import read_limits
from redline.model import Request, Scenario, Variant
from redline.model.catalogue import ComposeService, OwnImage
from redline.ports import Launch, Launcher, Placement
from redline.schema.server import ReadySchema
from redline.schema.setup import SetupSchema
from redline.suite.project import Own
from tests.e2e.conftest import Redline
from tests.e2e.engines import JANITOR_WITHIN_S, left_of_labs, working_engine
from tests.e2e.test_documented_commands import IN_CONTAINERS
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

FIRST_CORE = min(os.sched_getaffinity(0))
ONE_CORE = Placement(server_cpus=(FIRST_CORE,))
SHOP = f"fixture/shop-{os.getpid()}:1"
BARE = f"fixture/bare-{os.getpid()}:1"
MINE = f"mine-{os.getpid()}"
"""A volume and a container of the user's."""
APP = """\
import http.server, os, socket

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = os.environ.get("GREETING", "hello").encode()
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

print("the shop opens", flush=True)
if token := os.environ.get("TOKEN"):
    print("with", len(token), "characters:", token, flush=True)
Server(("0.0.0.0", 8080), Shop).serve_forever()
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> ContainerEngine:
    """A container engine that works here, or a skip with its reason."""
    return working_engine(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def shop(engine: ContainerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of a small server in Python, and of the same without a command and a port."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "app.py").write_text(APP)
    python = os.path.realpath(sys.executable)
    tools = ("sh", "sleep", "touch", "test")
    layer = folder / "layer.tar"
    images.pack(images.needed(folder, ("app.py",), (python,), tools, None), layer)
    command = json.dumps([python, str(folder / "app.py")])
    engine.call("import", "--change", f"CMD {command}", "--change", "EXPOSE 8080", str(layer), SHOP, within_s=120)
    engine.call("import", str(layer), BARE, within_s=120)
    yield SHOP
    engine.call("rmi", "--force", SHOP, BARE)


@pytest.fixture
def nothing_left(engine: ContainerEngine) -> Iterator[ContainerEngine]:
    """Check that the test leaves no containers, networks, volumes, images and control groups."""
    yield engine
    assert eventually(lambda: not left_of_labs(engine), JANITOR_WITHIN_S), left_of_labs(engine)


@pytest.fixture
def runs_compose_files(nothing_left: ContainerEngine, monkeypatch: pytest.MonkeyPatch) -> ContainerEngine:
    """What runs compose files here, podman-compose of the development environment at least where podman is."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    try:
        find_provider(nothing_left)
    except ContainerEngineError as error:
        pytest.skip(f"{error}; {error.hint}")
    return nothing_left


@pytest.fixture
def composing(runs_compose_files: ContainerEngine, tmp_path: Path) -> Iterator[ComposeLauncher]:
    """A launcher of services, whose lab ends with the test."""
    with ExitStack() as stack:
        launcher = ComposeLauncher(Containers(tmp_path / "scratch"), stack)
        yield launcher
    launcher._containers.close()


@pytest.fixture
def launcher(nothing_left: ContainerEngine, tmp_path: Path) -> Iterator[ImageLauncher]:
    """A launcher of images, whose lab ends with the test."""
    launcher = ImageLauncher(Containers(tmp_path / "scratch"))
    yield launcher
    launcher._containers.close()


def of_image(name: str, port: int | None = None, within: str = "20s", **env: str) -> Variant:
    ready = ReadySchema.model_validate({"within": within})
    own = Own(image=OwnImage(name=name, port=port), setup=SetupSchema(env=env), ready=ready)
    return Variant(entry=own.entry("shop", (Scenario(name="root", request=Request()),)))


def of_service(
    folder: Path, text: str, service: str = "web", within: str = "30s", fresh: Literal["all", "service"] = "all"
) -> Variant:
    file = folder / "compose.yaml"
    file.write_text(text)
    ready = ReadySchema.model_validate({"within": within})
    own = Own(compose=ComposeService(file=str(file), service=service, port=8080, fresh=fresh), ready=ready)
    return Variant(entry=own.entry("shop", (Scenario(name="root", request=Request()),)))


def compose_text(db: str = "sleep 0.5; touch /tmp/up; exec sleep 600", check: str = "/tmp/up") -> str:
    """A shop and its database, with names and ports that two starts cannot have at the same time."""
    return f"""\
services:
  web:
    image: {SHOP}
    container_name: {MINE}-web
    depends_on: {{db: {{condition: service_healthy}}}}
    ports: ["8080:8080"]
    environment: {{GREETING: "from compose"}}
  db:
    image: {BARE}
    container_name: {MINE}
    command: ["sh", "-c", "{db}"]
    healthcheck: {{test: [CMD, test, -e, {check}], interval: 1s, retries: 2}}
    ports: ["5432:5432"]
    volumes: ["data:/data"]
volumes:
  data: {{name: {MINE}}}
"""


def failed(launcher: Launcher, variant: Variant, folder: Path) -> LaunchError:
    with pytest.raises(LaunchError) as caught, launcher.running(Launch(variant, ONE_CORE, folder / "log")):
        pass
    return caught.value


def test_an_image_runs_as_it_is_on_the_cores_of_the_server(shop: str, launcher: ImageLauncher, tmp_path: Path) -> None:
    variant = of_image(shop, GREETING="from env")
    outcome = launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log", seed=7)) as running:
        pid = running.facts.pid
        assert running.endpoint.host == "127.0.0.1"
        assert running.endpoint.port != 8080
        assert os.sched_getaffinity(pid) == {FIRST_CORE}
        assert running.facts.build == outcome.hash_of("shop")
        assert "python" in running.facts.runtimes
        variables = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"GREETING=from env" in variables
        assert b"REDLINE_PADDING=x" in variables
        assert b"PYTEST_CURRENT_TEST" not in variables
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: running.death() is not None)
        death = running.death()
        assert death is not None
        assert "was ended by SIGKILL while it was under test; its last words: the shop opens" in death.message
    assert not Path(f"/proc/{pid}").exists()


def test_what_is_wrong_with_an_image_is_said(
    shop: str, launcher: ImageLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    missing = failed(launcher, of_image("fixture/nothere:1"), tmp_path)
    assert "has no image fixture/nothere:1, and Redline pulls none" in str(missing)
    assert f"{engine.name} pull fixture/nothere:1" in str(missing)
    assert "exposes no TCP port" in str(failed(launcher, of_image(BARE), tmp_path))
    assert "could not start its container: no command" in str(failed(launcher, of_image(BARE, 80), tmp_path))
    elsewhere = failed(launcher, of_image(shop, 81, within="2s"), tmp_path)
    assert "listens at 0.0.0.0:8080" in str(elsewhere)
    assert "let `port` be that on which it listens" in str(elsewhere)


@pytest.mark.usefixtures("nothing_left")
def test_a_run_without_its_only_image_says_once_where_to_get_it(redline: Redline) -> None:
    text = "servers: [{name: shop, image: 'fixture/nothere:1', port: 80}]\n"
    (redline.folder / "redline.yaml").write_text(text)
    done = redline("run")
    done.refused(1, "shop: ")
    assert done.err.count("has no image fixture/nothere:1, and Redline pulls none") == 1
    assert "pull fixture/nothere:1" in done.err
    assert "redline list" not in done.err


def test_an_image_whose_server_ends_at_once_says_its_last_words(
    shop: str, launcher: ImageLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    name = f"fixture/ends-{os.getpid()}:1"
    command = '["sh", "-c", "echo no licence; exit 3"]'
    (tmp_path / "Containerfile").write_text(f"FROM {shop}\nCMD {command}\n")
    engine.call("build", "--quiet", "--pull=false", "--tag", name, str(tmp_path), within_s=120)
    try:
        said = str(failed(launcher, of_image(name), tmp_path))
    finally:
        engine.call("rmi", "--force", name)
    assert "exited with code 3" in said
    assert "its last words: no licence" in said


def test_a_service_starts_with_its_database_and_meets_neither_another_start_nor_what_the_user_runs(
    shop: str, composing: ComposeLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    """The user has a volume and a container of the same names, which stay."""
    engine.call("volume", "create", MINE)
    engine.call("create", "--name", MINE, *engine.ulimits, shop)
    variant = of_service(tmp_path, compose_text())
    try:
        outcome = composing.build([variant], lambda _building: None)
        with (
            composing.running(Launch(variant, ONE_CORE, tmp_path / "a.log", seed=7)) as first,
            composing.running(Launch(variant, ONE_CORE, tmp_path / "b.log", seed=8)) as second,
        ):
            pid = first.facts.pid
            assert first.endpoint.port != second.endpoint.port
            assert first.facts.beside == second.facts.beside == ("db",)
            assert first.facts.build == outcome.hash_of("shop")
            assert os.sched_getaffinity(pid) == {FIRST_CORE}
            variables = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"GREETING=from compose" in variables
            assert b"REDLINE_PADDING=x" in variables
            assert len(engine.call("ps", "--quiet", "--filter", "label=redline.start").split()) == 4
            os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: first.death() is not None)
            death = first.death()
            assert death is not None
            assert "was ended by SIGKILL while it was under test; its last words: the shop opens" in death.message
            assert second.death() is None
        assert not Path(f"/proc/{pid}").exists()
        assert not left_of_starts(engine)
        assert MINE in engine.call("ps", "--all", "--format", "{{.Names}}").split()
        assert MINE in engine.call("volume", "ls", "--quiet").split()
    finally:
        engine.call("rm", "--force", MINE)
        engine.call("volume", "rm", MINE)


def test_services_stay_up_between_the_starts_of_a_server_that_wants_that(
    shop: str, composing: ComposeLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    """Each place of a comparison has its own, which start again when they ended or the cores of the server change."""
    variant = of_service(tmp_path, compose_text(), fresh="service")
    composing.build([variant], lambda _building: None)
    kept, ids, ports = [], [], set()
    for number in range(3):
        launch = Launch(variant, ONE_CORE, tmp_path / f"{number}.log", seed=number)
        with composing.running(launch) as running, composing.running(replace(launch, place=1)) as other:
            assert running.facts.beside == other.facts.beside == ("db",)
            kept.append(running.facts.kept)
            ids.append((running.facts.pid, of_databases(engine)))
            ports |= {running.endpoint.port, other.endpoint.port}
        assert not Path(f"/proc/{ids[-1][0]}").exists()
        assert of_databases(engine) == ids[0][1]
    assert kept == [(), ("db",), ("db",)]
    assert (len(ids[0][1]), len({pid for pid, _ in ids}), len(ports)) == (2, 3, 6)
    engine.call("kill", ids[0][1][0])
    said = {}
    for place in (0, 1):
        try:
            with composing.running(Launch(variant, ONE_CORE, tmp_path / "log", place=place)):
                said[place] = ""
        except LaunchError as error:
            said[place] = str(error)
    (of_killed,) = (text for text in said.values() if text)
    assert (
        f"the service db of {tmp_path}/compose.yaml, which runs through all starts, was ended by SIGKILL" in of_killed
    )
    with composing.running(Launch(variant, Placement(), tmp_path / "log")) as free:
        assert free.facts.kept == ()
    composing._standing.close()
    assert not left_of_starts(engine)


def of_databases(engine: ContainerEngine) -> list[str]:
    listed = ("ps", "--quiet", "--no-trunc", "--filter", "label=redline.start")
    return sorted(engine.call(*listed, "--filter", "label=com.docker.compose.service=db").split())


def left_of_starts(engine: ContainerEngine) -> str:
    """What starts have left that ended, while their lab runs."""
    commands = (("ps", "--all"), ("network", "ls"), ("volume", "ls"))
    return "".join(engine.call(*words, "--quiet", "--filter", "label=redline.start") for words in commands)


def test_a_service_is_built_and_the_tags_of_the_user_stay(
    shop: str, composing: ComposeLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {shop}\nENV GREETING=built\n")
    variant = of_service(tmp_path, f"services:\n  web: {{build: ., image: '{shop}'}}\n")
    before = engine.call("image", "inspect", "--format", "{{.Id}}", shop)
    assert composing.build([variant], lambda _building: None).hash_of("shop")
    with composing.running(Launch(variant, ONE_CORE, tmp_path / "log")) as running:
        assert b"GREETING=built" in Path(f"/proc/{running.facts.pid}/environ").read_bytes()
        assert running.facts.beside == ()
    composing._containers.close()
    assert engine.call("image", "inspect", "--format", "{{.Id}}", shop) == before


@pytest.mark.long
def test_a_service_of_the_same_image_as_the_users_leaves_that_image_here(
    shop: str, composing: ComposeLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {shop}\n")
    variant = of_service(tmp_path, "services:\n  web: {build: .}\n")
    assert composing.build([variant], lambda _building: None).hash_of("shop")
    composing._containers.close()
    assert engine.call("image", "inspect", "--format", "{{.Id}}", shop)


def test_what_is_wrong_with_a_compose_file_is_said_before_anything_starts(
    shop: str, composing: ComposeLauncher, tmp_path: Path
) -> None:
    assert "has no service `shop`" in str(failed(composing, of_service(tmp_path, compose_text(), "shop"), tmp_path))
    missing = of_service(tmp_path, "services: {web: {image: 'fixture/nothere:1'}}")
    composing._composed.clear()
    assert "has no image fixture/nothere:1" in str(failed(composing, missing, tmp_path))
    broken = of_service(tmp_path, "services: [web")
    assert "compose config` failed" in str(failed(composing, broken, tmp_path))
    (tmp_path / "compose.yaml").unlink()
    assert "there is no compose file" in str(failed(composing, broken, tmp_path))


def test_a_service_that_does_not_come_up_is_named_with_its_last_words(
    shop: str, composing: ComposeLauncher, engine: ContainerEngine, tmp_path: Path
) -> None:
    ends = of_service(tmp_path, compose_text(db="echo no disk; exit 3"))
    said = str(failed(composing, ends, tmp_path))
    assert "the service db of" in said
    assert "exited with code 3 at its start; its last words: no disk" in said
    composing._composed.clear()
    sick = of_service(tmp_path, compose_text(check="/never"), within="3s")
    assert "the health check of the service db did not pass within 3 s: it ended with code 1" in str(
        failed(composing, sick, tmp_path)
    )
    assert not left_of_starts(engine)


def test_a_comparison_keeps_the_databases_and_says_so(
    shop: str, runs_compose_files: ContainerEngine, redline: Redline
) -> None:
    (redline.folder / "compose.yaml").write_text(compose_text())
    (redline.folder / "redline.yaml").write_text(
        "servers:\n  - {name: a, compose: compose.yaml, service: web, port: 8080, fresh: service}\n"
        "  - {name: b, compose: compose.yaml, service: web, port: 8080}\n"
        "loads: {few: {closed: {users: 4}}}\nbudget: 3s\n"
    )
    done = redline("run", "-o", redline.folder / "out")
    assert done.code == 0, done.err
    assert "  started in " in done.err
    results = (redline.folder / "out/results.json").read_text()
    assert "db of a started once for 3 starts of it" in results
    assert "db of b started" not in results
    duets = sorted((redline.folder / "out/duets").iterdir())
    (first, *others) = (json.loads(file.read_text()) for file in duets)
    share = sum(duet["launch_ns"] for duet in (first, *others)) / sum(duet["took_ns"] for duet in (first, *others))
    assert ("It took " in results) is (share >= 0.5)  # a note on slow starts, whatever the machine's speed
    assert 0 < first["launch_ns"] < first["took_ns"]
    assert [server.get("kept") for server in first["servers"]] == [None, None, None]
    for other in others:
        assert [server.get("kept") for server in other["servers"]] == [["db"], None, ["db"]]


def test_an_image_has_the_limits_that_are_written(
    shop: str, launcher: ImageLauncher, redline: Redline, tmp_path: Path
) -> None:
    own = Own(image=OwnImage(name=shop, cpus=0.5, memory_bytes=64 << 20))
    variant = Variant(entry=own.entry("shop", (Scenario(name="root", request=Request()),)))
    with launcher.running(Launch(variant, ONE_CORE, tmp_path / "log")) as running:
        limits = read_limits(pid=running.facts.pid)
        assert (limits.cores, limits.memory_bytes) == (0.5, 64 << 20)
    (redline.folder / "redline.yaml").write_text(
        f"servers: [{{name: shop, image: '{shop}', cpus: 0.5, memory: 64MiB}}]\n{FEW}"
    )
    done = redline("run", "--trials", "1", "-d", "300ms", "--warmup", "50ms")
    assert done.code == 0, done.err
    assert f"a container of {shop}, with 0.5 CPUs and 64.0 MiB of memory" in done.out


def test_an_image_is_compared_with_a_service_and_the_report_says_what_they_are(
    shop: str, runs_compose_files: ContainerEngine, redline: Redline
) -> None:
    (redline.folder / "compose.yaml").write_text(compose_text())
    (redline.folder / "redline.yaml").write_text(
        f"servers:\n  - {{name: alone, image: '{shop}', env: {{GREETING: from compose}}}}\n"
        "  - {name: whole, compose: compose.yaml, service: web, port: 8080}\n"
        "loads: {few: {closed: {users: 4}}}\nbudget: 3s\n"
    )
    done = redline("run", "-o", redline.folder / "out")
    assert done.code == 0, done.err
    assert f"alone: a container of {shop}" in done.out
    assert "the service web of" in done.out
    results = json.loads((redline.folder / "out/results.json").read_text())
    assert "db runs beside it, and is not counted" in json.dumps(results)


@pytest.mark.parametrize(
    ("number", "command"), [(signal.SIGKILL, "load -d 1s"), (signal.SIGINT, "load -d 1s"), (signal.SIGINT, "run")]
)
def test_a_lab_that_is_ended_while_services_start_leaves_nothing(
    number: int, command: str, shop: str, runs_compose_files: ContainerEngine, redline: Redline
) -> None:
    """The check of the database never passes, so the lab is ended while it waits, for three projects to compare."""
    (redline.folder / "compose.yaml").write_text(compose_text(check="/never"))
    names = ("shop", "other") if command == "run" else ("shop",)
    servers = "".join(f"  - {{name: {name}, compose: compose.yaml, service: web, port: 8080}}\n" for name in names)
    (redline.folder / "redline.yaml").write_text(f"servers:\n{servers}")
    with redline.start(*command.split()) as process:
        deadline = time.monotonic() + 120
        while not runs_compose_files.call("ps", "--quiet", "--filter", f"name=redline-{process.pid}-"):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=120)


TOKEN = "tok-5c2e8d11"
AROUND = r"""
    before: echo "before $PORT" >> trace
    prepare: |
      cat /proc/[0-9]*/cmdline | tr '\0' ' ' > commands
      echo "prepare $PORT" >> trace
    after: echo "after $PORT" >> trace
"""
FEW = "loads: {few: {closed: {users: 2}}}\n"
SUITE = """\
servers: [shop]
scenarios: [{name: root, get: /}]
loads: {few: {closed: {users: 2}, for: 200ms}}
warmup: 50ms
trials: 1
"""


def check_set_up(folder: Path, starts: int) -> None:
    """Check that the commands ran around each start, and that the token reached the server and nothing else."""
    trace = [line.split() for line in (folder / "trace").read_text().splitlines()]
    for port in {port for _, port in trace}:
        assert [word for word, of in trace if of == port] == ["before", "prepare", "after"]
    assert len(trace) == 3 * starts
    logs = [file.read_text() for file in folder.rglob("logs/*/server*.log")]
    assert any("the shop opens\nwith 12 characters: ***\n" in text for text in logs)
    for file in folder.rglob("*"):
        if file.is_file() and file.name != ".env":
            assert TOKEN.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("suite", [pytest.param(False, marks=pytest.mark.long), True])
def test_commands_run_around_an_image_and_its_secrets_are_nowhere(
    suite: bool, shop: str, nothing_left: ContainerEngine, redline: Redline
) -> None:
    """From a folder below that of redline.yaml, and for a suite there that names the server."""
    folder, below = redline.folder, redline.folder / "below"
    (folder / ".env").write_text(f"TOKEN={TOKEN}\n")
    (folder / "redline.yaml").write_text(
        f"servers:\n  - name: shop\n    image: {shop}\n    env_file: .env\n"
        f"    env: {{GREETING: 'hi ${{PIN}}'}}{AROUND}{FEW}"
    )
    below.mkdir()
    (below / "suite.yaml").write_text(SUITE)
    redline.environment |= {"PIN": "4321", "TOKEN": "another"}
    redline.folder = below
    named = ["suite.yaml"] if suite else ["--trials", "1", "-d", "200ms", "--warmup", "50ms"]
    done = redline("run", *named, "-o", "out")
    assert done.code == 0, done.err
    check_set_up(folder, starts=1)
    commands = (folder / "commands").read_text()
    assert "--env GREETING " in commands
    assert "--env TOKEN " in commands
    assert TOKEN not in done.out + done.err


def test_after_runs_when_a_container_fails_and_its_last_words_show_no_secret(
    shop: str, nothing_left: ContainerEngine, redline: Redline
) -> None:
    redline.environment["TOKEN"] = TOKEN
    (redline.folder / "redline.yaml").write_text(
        f"servers:\n  - name: shop\n    image: {shop}\n    port: 81\n    ready: {{within: 5s}}\n"
        f"    env: {{TOKEN: '${{TOKEN}}'}}{AROUND}"
    )
    done = redline("load", "-d", "1s")
    assert done.code == 1
    assert "listens at 0.0.0.0:8080" in done.err
    assert TOKEN not in done.out + done.err
    assert [line.split()[0] for line in (redline.folder / "trace").read_text().splitlines()] == ["before", "after"]


def test_commands_run_around_a_service_and_its_secrets_are_not_stored(
    shop: str, runs_compose_files: ContainerEngine, redline: Redline
) -> None:
    (redline.folder / ".env").write_text(f"TOKEN={TOKEN}\n")
    (redline.folder / "compose.yaml").write_text(
        f"services:\n  web:\n    image: {shop}\n    environment: {{TOKEN: '${{TOKEN}}'}}\n"
    )
    (redline.folder / "redline.yaml").write_text(
        f"servers:\n  - name: shop\n    compose: compose.yaml\n    service: web\n    port: 8080{AROUND}{FEW}"
    )
    done = redline("run", "--trials", "1", "-d", "200ms", "--warmup", "50ms", "-o", "out")
    assert done.code == 0, done.err
    (redline.folder / "commands").unlink()  # podman-compose has the environments of services in its commands
    check_set_up(redline.folder, starts=1)
    assert TOKEN not in done.out + done.err


@pytest.mark.parametrize(
    "command", [pytest.param(text, marks=[] if ":" in text else [pytest.mark.long]) for text in IN_CONTAINERS]
)
def test_init_asks_a_service_once_and_writes_a_file_that_is_read(
    command: str, shop: str, runs_compose_files: ContainerEngine, redline: Redline
) -> None:
    """The service has to be named where several publish ports."""
    text = f"services:\n  web:\n    image: {shop}\n    ports: ['80:8080']\n"
    (redline.folder / "compose.yaml").write_text(compose_text() if ":" in command else text)
    if ":" in command:
        redline("init", "compose.yaml").refused(2, "compose.yaml publishes 2 ports: web:8080, db:5432", command)
        assert not (redline.folder / "redline.yaml").exists()
    done = redline(*command.split())
    assert done.code == 0, done.err
    assert "GET /: status 200, " in done.out
    assert redline("check").code == 0
