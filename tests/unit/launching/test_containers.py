"""Containers without an engine: the content of an image, how an engine is called and located, what is verified."""

import os
import signal
import subprocess
import sys
import tarfile
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

import pytest

from redline.launching import container_engine, containers, images
from redline.launching.container_engine import (
    CHOICE,
    ContainerEngine,
    ContainerEngineError,
    find_container_engine,
    reason_of,
)
from redline.launching.containers import Box, BoxedStart, Containers, Image, catches_sigterm, cores_of
from redline.launching.guard import LaunchOrder
from redline.launching.jdks import Jdk
from redline.launching.process import ProcessLauncher
from redline.linux import cgroup, procfs
from redline.linux.cgroup import Limits
from redline.linux.network import Namespace
from redline.linux.sockets import At
from redline.model import Container, Variant
from tests.fakes.servers.entries import eventually, make_catalogue, server

SCRIPT = """\
#!/bin/sh
case "$1 $2" in
"--version ") echo "podman version 4.3.1" ;;
"version --format") echo 4.3.1 ;;
*) {rest} ;;
esac
"""


def client(folder: Path, name: str = "podman", rest: str = "true", text: str = SCRIPT) -> Path:
    """A client that knows its version, and runs `rest` for all else."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text.format(rest=rest))
    file.chmod(0o755)
    return file


def engine(name: str = "podman") -> ContainerEngine:
    found = ContainerEngine(f"/usr/bin/{name}")
    vars(found).update(name=name, command=(f"/usr/bin/{name}",), ulimits=("--ulimit", "nofile=9:9"))
    return found


OF_THE_BUILD = Image("redline/7-ab:x")


def box(wanted: Container, image: Image = OF_THE_BUILD) -> Box:
    return Box(engine(), "redline-7-ab-1", "7-ab", "fam.one", wanted, image, BoxedStart(8080, Path("/s/1"), ("A",)))


def order_in(wanted: Container, image: Image = OF_THE_BUILD, cpus: tuple[int, ...] = ()) -> list[str]:
    order = LaunchOrder(
        command=("/b/server", "--port", "8080"),
        folder=Path("/b"),
        env={"A": "one", "PATH": "/p", "SECRET": "of the lab"},
        cpus=cpus,
        grace_ns=1,
        cgroup_parent=Path("/sys/fs/cgroup"),
        log=Path("/log"),
    )
    boxed = box(wanted, image).order(order)
    assert (boxed.cpus, boxed.cgroup_parent) == ((), None)
    assert boxed.env == dict(os.environ)
    return list(boxed.command)


def test_private_values_stand_in_no_command_line_however_short() -> None:
    env = {"A": "1234", "PATH": "/p"}
    order = LaunchOrder(("/b/server",), Path("/b"), env, (), 1, None, Path("/log"), private=("A",))
    boxed = box(Container()).order(order)
    assert "1234" not in " ".join(boxed.command)
    assert ("--env", "A") in pairs(list(boxed.command))
    assert boxed.env == {**os.environ, "A": "1234"}
    assert "1234" not in boxed.line().decode()


@pytest.mark.parametrize("name", ["PATH", "HOME", "DOCKER_HOST", "XDG_RUNTIME_DIR"])
def test_no_private_variable_changes_the_client(name: str) -> None:
    order = LaunchOrder(("/b/server",), Path("/b"), {name: "/p"}, (), 1, None, Path("/log"), private=(name,))
    boxed = replace(box(Container()), start=BoxedStart(8080, Path("/s/1"), (name,)))
    with pytest.raises(ContainerEngineError, match=f"{name}, which .* would change how podman itself runs"):
        boxed.order(order)
    assert ("--env", f"{name}=/p") in pairs(list(boxed.order(replace(order, private=())).command))


def pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(pairwise(words))


def test_a_container_has_the_network_of_the_machine_and_no_limit() -> None:
    words = order_in(Container())
    assert words[:2] == ["/usr/bin/podman", "run"]
    assert words[-5:] == ["--entrypoint", "/b/server", "redline/7-ab:x", "--port", "8080"]
    assert {
        ("--network", "host"),
        ("--pids-limit", "-1"),
        ("--label", "redline.lab=7-ab"),
        ("--pull", "never"),
        ("--workdir", "/b"),
        ("--volume", "/s/1:/s/1"),
        ("--ulimit", "nofile=9:9"),
    } <= pairs(words)
    assert {word for name, word in pairs(words) if name == "--env"} == {"A=one", "PATH=/p"}
    assert not {"--cpus", "--memory", "--publish", "--cpuset-cpus"} & set(words)


def test_a_container_gets_its_cores_its_limits_and_a_port_of_this_machine_alone() -> None:
    wanted = Container(network="published", cpus=0.5, memory_bytes=64 << 20, pids=100)
    words = pairs(order_in(wanted, cpus=(0, 2)))
    assert {
        ("--network", "redline-7-ab-1"),
        ("--publish", "127.0.0.1:8080:8080"),
        ("--cpuset-cpus", "0,2"),
        ("--cpus", "0.5"),
        ("--memory", "67108864"),
        ("--memory-swap", "67108864"),
        ("--pids-limit", "100"),
    } <= words


def test_an_image_of_the_user_gets_the_build_and_keeps_its_own_path() -> None:
    words = order_in(Container(image="debian:12"), Image("debian:12", (Path("/b"), Path("/jdk"))))
    assert {("--volume", "/b:/b:ro"), ("--volume", "/jdk:/jdk:ro")} <= pairs(words)
    assert {word for name, word in pairs(words) if name == "--env"} == {"A=one"}


def test_a_quota_bounds_how_many_cores_a_server_hears_of() -> None:
    assert [cores_of(wanted, 4) for wanted in (None, Container(), Container(cpus=0.5), Container(cpus=2.5))] == [
        4,
        4,
        1,
        3,
    ]
    assert cores_of(Container(cpus=9), 4) == 4


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (Limits("v2", 0.5, 64 << 20, 100), []),
        (Limits("v1", 0.50002, 64 << 20, 100), []),
        (Limits("hybrid", None, 64 << 20, 100), [("the limit `cpus`", "0.5", "None")]),
        (Limits("v2", 0.25, 64 << 20, 100), [("the limit `cpus`", "0.5", "0.25")]),
        (Limits("v2", 0.5, 32 << 20, 100), [("the limit `memory`", "67108864", "33554432")]),
        (Limits("v2", 0.5, 64 << 20, None), [("the limit `pids`", "100", "None")]),
    ],
)
def test_a_limit_that_is_not_in_force_is_named(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, found: list[tuple[str, str, str]]
) -> None:
    monkeypatch.setattr(cgroup, "read_limits", lambda **_: limits)
    # Half a page more than whole pages: the kernel keeps whole pages.
    wanted = Container(cpus=0.5, memory_bytes=(64 << 20) + 2048, pids=100)
    assert box(wanted).differences(os.getpid(), ()) == found
    assert box(Container()).differences(os.getpid(), ()) == []


def test_cores_that_are_not_those_of_the_plan_are_named() -> None:
    own = tuple(sorted(os.sched_getaffinity(0)))
    assert box(Container()).differences(os.getpid(), own) == []
    assert [what for what, _, _ in box(Container()).differences(os.getpid(), (own[0], 4095))] == ["the cores"]


def test_limits_of_a_container_are_read_by_way_of_its_first_process(tmp_path: Path) -> None:
    proc, v1, v2 = tmp_path / "proc", tmp_path / "v1", tmp_path / "v2"
    for folder in (proc / "self", proc / "7", v1 / "box", v2 / "box"):
        folder.mkdir(parents=True)
    (v1 / "box/pids.max").write_text("100\n")
    (v1 / "pids.max").write_text("max\n")
    (v2 / "box/pids.max").write_text("50\n")
    (v2 / "box/memory.max").write_text("4096\n")
    (proc / "self/mountinfo").write_text(f"1 0 0:1 / {v1} rw - cgroup cgroup rw,pids\n")
    (proc / "7/cgroup").write_text("3:pids:/box\n0::/box\n")
    assert cgroup.read_limits(proc, 7) == Limits("v1", None, None, 100)
    (proc / "self/mountinfo").write_text(f"1 0 0:1 / {v2} rw - cgroup2 cgroup2 rw\n")
    assert cgroup.read_limits(proc, 7) == Limits("v2", None, 4096, 50)


@pytest.mark.parametrize(
    ("folder", "is_own"),
    [
        (f"libpod-{'a' * 64}", True),
        (f"libpod-{'a' * 64}.scope", True),
        (f"libpod-{'a' * 64}.scope/container", True),
        (f"docker-{'0' * 64}.scope", True),
        (f"docker/{'0' * 64}", True),
        ("user.slice", False),
        ("app/container", False),
    ],
)
def test_the_group_of_a_container_is_its_own(monkeypatch: pytest.MonkeyPatch, folder: str, is_own: bool) -> None:
    group = Path("/sys/fs/cgroup", folder)
    monkeypatch.setattr(cgroup, "group_of", lambda _pid: group)
    assert cgroup.own_group_of(7) == (group if is_own else None)


def test_what_listens_in_another_network_is_read_from_its_tables(tmp_path: Path) -> None:
    folder = tmp_path / "proc/7/net"
    folder.mkdir(parents=True)
    head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
    (folder / "tcp").write_text(
        f"{head}0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 7\n1: 0100007F:0050 0100007F:1 01 0:0 00:0 0 0 0 8\n"
    )
    (folder / "tcp6").write_text(f"{head}0: {'0' * 32}:0051 {'0' * 32}:0000 0A 0:0 00:0 0 0 0 9\n")
    assert Namespace(7, tmp_path).listening() == {(At(ip_address("127.0.0.1"), 8080), 7), (At(ip_address("::"), 81), 9)}


def test_an_image_has_links_interpreters_and_what_words_name(tmp_path: Path) -> None:
    real, build = tmp_path / "real", tmp_path / "build"
    (real / "deep").mkdir(parents=True)
    (real / "deep/jar").write_text("jar")
    (build / "conf").mkdir(parents=True)
    (build / "conf/a.yml").write_text("a")
    (build / "src").mkdir()
    (build / "src/Main.java").write_text("not in the image")
    (build / "lib").symlink_to("../real/deep")
    (build / "start").write_text("#!/bin/sh\nexec true\n")
    (build / "start").chmod(0o755)
    (build / "args").write_text("-cp lib/*")
    words = ["./start", "@args", f"-Dconf={build}/conf", "{", "--port", "1", f"{build}/start"]
    found = images.needed(build, ["lib"], words, ["true"], None)
    assert {build / "lib", real / "deep/jar", build / "conf/a.yml", build / "start"} <= set(found)
    assert build / "src/Main.java" not in found
    names = {path.name for path in found}
    assert {"sh", "cat", "true", "mkdir"} <= names
    assert {"libc.so.6", "libgcc_s.so.1"} <= names
    assert list(found) == sorted(set(found))
    assert all(os.path.lexists(path) for path in found)


def test_an_image_has_the_jdk_without_what_only_developers_use(tmp_path: Path) -> None:
    home, etc = tmp_path / "jdk", tmp_path / "etc"
    for folder in (home / "bin", home / "lib", home / "jmods", etc):
        folder.mkdir(parents=True)
    (etc / "java.security").write_text("x")
    (home / "bin/java").write_text("x")
    (home / "conf").symlink_to(etc)
    (home / "lib/src.zip").write_text("x")
    (home / "jmods/java.base.jmod").write_text("x")
    found = images.needed(tmp_path, (), ["true"], (), Jdk(home, 21, (21,), ga=True, name="x"))
    assert {home / "bin/java", home / "conf", etc / "java.security"} <= set(found)
    assert not {home / "lib/src.zip", home / "jmods"} & set(found)


def test_the_way_to_a_path_ends_at_what_is_not_there_and_in_circles(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("about")
    (tmp_path / "about").symlink_to("round")
    (tmp_path / "up").symlink_to("../" + tmp_path.name + "/file")
    (tmp_path / "file").write_text("x")
    assert list(images.path_steps(tmp_path / "round/file")) == []
    assert list(images.path_steps(tmp_path / "nothing/file")) == []
    way = list(images.path_steps(tmp_path / "up"))
    assert tmp_path / "up" in way
    assert way[-1] == tmp_path / "file"


def test_a_layer_keeps_links_and_belongs_to_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    os.link(tmp_path / "file", tmp_path / "same")
    (tmp_path / "link").symlink_to("file")
    paths = sorted([tmp_path, tmp_path / "file", tmp_path / "same", tmp_path / "link"])
    images.pack(paths, tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as archive:
        members = {Path("/", member.name): member for member in archive.getmembers()}
        assert {(member.uid, member.gid, member.uname) for member in members.values()} == {(0, 0, "root")}
        assert members[tmp_path / "link"].linkname == "file"
        for name in ("file", "same"):
            content = archive.extractfile(members[tmp_path / name])
            assert content is not None
            assert content.read() == b"content"
        assert members[Path("/tmp")].mode & 0o7777 == 0o1777
        assert len(members) == len(archive.getmembers())


def test_another_content_makes_another_image(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    before = images.digest([tmp_path, file])
    assert images.digest([tmp_path, file]) == before
    os.utime(file, ns=(0, 0))
    assert images.digest([tmp_path, file]) != before


def test_the_first_client_that_answers_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv(CHOICE, raising=False)
    docker = client(tmp_path / "bin", "docker")
    client(tmp_path / "bin", "podman", text="#!/bin/sh\necho 'Error: no such user' >&2\nexit 125\n")
    tried: list[str] = []
    found = find_container_engine(lambda each: tried.append(each.client))
    assert tried == [str(docker)]
    assert (found.client, found.name, found.version) == (str(docker), "podman", "podman 4.3.1")
    monkeypatch.setenv(CHOICE, "podman")
    with pytest.raises(ContainerEngineError, match="`podman --version` failed: no such user"):
        find_container_engine(lambda _: None)
    monkeypatch.setenv(CHOICE, "rkt")
    with pytest.raises(ContainerEngineError, match=f"{CHOICE} names rkt"):
        find_container_engine(lambda _: None)


def test_one_that_cannot_run_a_container_gives_way_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv(CHOICE, raising=False)
    podman, docker = (client(tmp_path / "bin", name) for name in ("podman", "docker"))

    def rootless(each: ContainerEngine) -> None:
        if each.client in refusing:
            raise ContainerEngineError(f"{Path(each.client).name}: no cpuset", "delegate it")

    refusing = [str(podman)]
    assert find_container_engine(rootless).client == str(docker)
    refusing.append(str(docker))
    with pytest.raises(ContainerEngineError, match="podman: no cpuset; docker: no cpuset"):
        find_container_engine(rootless)


def test_without_a_client_the_reason_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(CHOICE, raising=False)
    with pytest.raises(ContainerEngineError, match="neither podman nor docker") as caught:
        find_container_engine(lambda _: None)
    assert "install podman or docker" in caught.value.hint


def runs(pid: int) -> bool:
    found = procfs.read_stat(pid)
    return found is not None and found.state != "Z"


def test_an_engine_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_engine, "ANSWER_WITHIN_S", 0.3)
    pids = tmp_path / "pids"
    hanging = client(tmp_path / "bin", rest=f"sleep 600 & echo $! $$ > {pids}; wait")
    with pytest.raises(ContainerEngineError, match=r"`podman ps` did not end within 0\.3 s"):
        ContainerEngine(str(hanging)).call("ps")
    assert eventually(lambda: not any(runs(int(pid)) for pid in pids.read_text().split()))


def test_an_engine_that_was_late_gets_less_time_until_it_answers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def output(command: tuple[str, ...], verb: str, within_s: float) -> str:
        limits.append(within_s)
        if verb == "hang":
            raise ContainerEngineError("late", "", late=True)
        return ""

    monkeypatch.setattr(container_engine, "output", output)
    found = engine()
    for verb in ("ps", "hang", "hang", "ps", "ps"):
        with suppress(ContainerEngineError):
            found.call(verb, within_s=60)
    assert limits == [60, 60, 4, 4, 60]


def test_the_reason_of_a_failure_is_one_line_without_the_words_that_all_have() -> None:
    assert reason_of("Trying\nError: image not known\n") == "image not known"
    said = "docker: Error response from daemon: port is taken.\nSee 'docker run --help'.\n"
    assert reason_of(said) == "port is taken."
    assert reason_of("") == ""


def boxed(variant: Variant) -> Variant:
    return variant.model_copy(update={"container": Container()})


def test_where_no_engine_runs_containers_the_cells_are_skipped_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the suite runs, and the engine is not tried again."""
    tried = tmp_path / "tried"
    refusing = client(tmp_path / "bin", rest=f"echo $* >> {tried}; echo 'Error: no cgroups' >&2; exit 126")
    monkeypatch.setenv(CHOICE, str(refusing))
    launcher = ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")
    plain = server()
    one, two = boxed(plain), boxed(server("other"))
    outcome = launcher.build([plain, one, two], lambda _building: None)
    assert list(outcome.hashes) == [plain.slug]
    for variant in (one, two):
        reason = outcome.unavailable[variant.slug]
        assert reason == "no container for it: `podman import` failed: no cgroups"
    assert tried.read_text().split().count("import") == 1


def test_only_a_process_that_handles_sigterm_gets_it() -> None:
    code = "import signal, sys; {}; print(flush=True); sys.stdin.read()"
    for handles, statement in ((True, "signal.signal(signal.SIGTERM, lambda *_: None)"), (False, "pass")):
        command = [sys.executable, "-S", "-c", code.format(statement)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert catches_sigterm(process.pid) == handles
            process.send_signal(signal.SIGKILL)


def test_the_janitor_removes_what_has_the_label_of_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    rest = f'echo "$*" >> {said}; case "$1" in ps) echo c1; echo c2 ;; images) echo redline/$LAB:1; echo shop:1 ;; esac'
    found = ContainerEngine(str(client(tmp_path / "bin", rest=rest)))
    vars(found)["command"] = (found.client,)
    lab = Containers(tmp_path)
    lab._watch(found)
    assert not said.exists()
    lab.close()
    label = f"--filter label=redline.lab={lab.lab}"
    assert said.read_text().splitlines() == [
        f"ps --all --quiet {label}",
        "kill c1 c2",
        "rm --force --volumes c1 c2",
        f"network ls --quiet {label}",
        f"volume ls --quiet {label}",
        f"images --format {{{{.Repository}}}}:{{{{.Tag}}}} redline/{lab.lab}",
        f"rmi --force redline/{lab.lab}:1",
    ]
    lab.close()
    assert containers.LABEL == "redline.lab"


def test_the_janitor_of_a_lab_that_was_killed_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine was making when the lab ended may have come after the first look."""
    said = tmp_path / "said"
    found = ContainerEngine(str(client(tmp_path / "bin", rest=f'echo "$1" >> {said}')))
    vars(found)["command"] = (found.client,)
    pause = tmp_path / "bin" / "sleep"
    pause.write_text(f'#!/bin/sh\necho "sleep $1" >> {said}\n')
    pause.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pause.parent}{os.pathsep}{os.environ['PATH']}")
    lab = Containers(tmp_path)
    lab._watch(found)
    janitor, lab._janitor = lab._janitor, None
    assert janitor is not None
    assert janitor.stdin is not None
    janitor.stdin.close()  # as the end of the lab does
    janitor.wait(60)
    looks = ["ps", "network", "volume", "images"]
    assert said.read_text().splitlines() == [*looks, *["sleep 10", *looks] * 6]
