"""Compose files without an engine: what `config` prints, what is changed for a start, and what `inspect` says."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from redline.launching.compose_file import (
    ComposeFile,
    ComposeFileError,
    ContainerState,
    OwnStart,
    not_merged,
    override,
    read_config,
    read_containers,
)
from redline.launching.compose_provider import find_provider
from redline.launching.container_engine import ContainerEngine, ContainerEngineError
from redline.launching.own_images import read_image

OF_PODMAN = """\
services:
  db:
    container_name: shop-db
    healthcheck: {test: [CMD, "true"]}
    image: postgres:16
    ports: ["5432:5432"]
    ulimits: {nofile: 100}
  migrations:
    depends_on: {db: {condition: service_healthy}}
    image: shop:1
  web:
    build: {context: /home/me/shop}
    depends_on:
      db: {condition: service_healthy}
      migrations: {condition: service_completed_successfully}
    ports: ["8080:8080"]
  worker:
    depends_on: [web]
    image: shop:1
volumes:
  data: {name: shop-data}
  photos: {external: true}
  spare: null
"""
OF_DOCKER = """\
name: shop
services:
  web:
    deploy: {replicas: 2}
    image: shop:1
    networks: {default: null}
    network_mode: host
networks:
  default: {name: shop_default}
  theirs: {name: theirs, external: true}
"""


def start(**others: object) -> OwnStart:
    values = {
        "project": "redline-7-ab-1",
        "labels": {"redline.lab": "7-ab"},
        "service": "web",
        "port": 23456,
        "inside": 8080,
        "images": {"web": "redline/7-ab:0-web"},
    }
    return OwnStart(**{**values, **others})  # type: ignore[arg-type]


def refused(file: ComposeFile, service: str) -> ComposeFileError:
    with pytest.raises(ComposeFileError) as caught:
        file.check("compose.yaml", service)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "the file is no mapping"),
        ("services: [a]", "`services` is no mapping"),
        ("services: {web: 3}", "`services.web` is no mapping"),
        ("services: {web: {image: 3}}", "`services.web.image` is no name of an image"),
        ("services: {web: {deploy: [3]}}", "`services.web.deploy` is no mapping"),
        ("services: {web: {deploy: {replicas: abc}}}", "`services.web` has `replicas: abc`, which is no number"),
        ("services: {web: {scale: [1]}}", "`services.web` has `replicas: [1]`, which is no number"),
        ("services: {web: {depends_on: 3}}", "`services.web.depends_on` is no mapping"),
        ("services: {web: {depends_on: {db: 3}}}", "`services.web.depends_on.db` is no mapping"),
        ("services: {web: {ulimits: 4}}", "`services.web.ulimits` is no mapping"),
        ("services: {web: {}}\nvolumes: [a]", "`volumes` is no mapping"),
        ("services: {web: {}}\nnetworks: {a: 3}", "`networks.a` is no mapping"),
    ],
)
def test_what_podman_compose_lets_pass_is_refused_by_its_place(text: str, message: str) -> None:
    with pytest.raises(ComposeFileError) as caught:
        read_config(text)
    assert str(caught.value) == message


def test_services_start_when_those_before_them_are_healthy_or_have_completed() -> None:
    file = read_config(OF_PODMAN)
    assert file.waves == (("db",), ("migrations",), ("web", "worker"))
    assert file.completing == {"migrations"}
    file.check("compose.yaml", "web")


def test_services_that_wait_for_one_another_start_together() -> None:
    file = read_config("services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}")
    assert file.waves == (("a", "b"),)


def test_a_service_that_cannot_be_loaded_is_refused_with_the_reason() -> None:
    assert str(refused(read_config(OF_PODMAN), "shop")) == "compose.yaml has no service `shop`"
    assert refused(read_config(OF_PODMAN), "shop").hint == "its services are: db, migrations, web, worker"
    assert "network_mode: host" in str(refused(read_config(OF_DOCKER), "web"))
    several = read_config(OF_DOCKER.replace("    network_mode: host\n", ""))
    assert "has 2 containers, and Redline loads one" in str(refused(several, "web"))
    with pytest.raises(ComposeFileError, match="no YAML"):
        read_config("services: [")


def test_a_start_meets_no_other_and_publishes_nothing_but_its_server() -> None:
    text = override(read_config(OF_PODMAN), start(cpus=(0, 2), ulimits=(("nofile", 9), ("nproc", 5))))
    yaml = YAML()
    read = yaml.load(text)
    assert read["x-podman"] == {"in_pod": False}
    services = read["services"]
    assert list(services) == ["db", "migrations", "web", "worker"]
    assert all(service["labels"] == {"redline.lab": "7-ab"} for service in services.values())
    assert '"ports": !override ["127.0.0.1:23456:8080"]' in text
    assert text.count('"ports": !reset []') == 1
    assert (services["db"]["container_name"], services["db"]["cpuset"]) == ("redline-7-ab-1-db", "0,2")
    assert services["db"]["ulimits"] == {"nproc": {"soft": 5, "hard": 5}}
    assert services["web"]["image"] == "redline/7-ab:0-web"
    assert {service["restart"] for service in services.values()} == {"no"}
    assert {service["pull_policy"] for service in services.values()} == {"never"}
    assert dict(read["volumes"]) == {
        name: {"name": f"redline-7-ab-1_{name}", "labels": {"redline.lab": "7-ab"}} for name in ("data", "spare")
    }
    assert list(read["networks"]) == ["default"]


def test_a_port_that_was_not_published_is_and_what_is_external_is_left_alone() -> None:
    file = read_config(OF_DOCKER)
    text = override(file, start(padding="PAD", padding_bytes=3))
    read = YAML(typ="safe").load(text)
    assert read["services"]["web"]["ports"] == ["127.0.0.1:23456:8080"]
    assert read["services"]["web"]["environment"] == {"PAD": "xxx"}
    assert list(read["networks"]) == ["default"]
    assert "volumes" not in read


@pytest.mark.parametrize(
    ("merged", "kept"),
    [
        ("volumes: {data: {name: shop-data}}", "`name: shop-data` of `volumes.data`"),
        ("networks: {default: {name: shop}}", "`name: shop` of `networks.default`"),
        ("services: {db: {container_name: db}}", "`container_name: db` of `services.db`"),
        ("services: {db: {ports: ['5432:5432']}}", "`ports` of `services.db`"),
        ("volumes: {data: {name: redline-7-ab-1_data}, theirs: {external: true, name: x}, plain: null}", ""),
        ("services: {web: {ports: ['8080'], container_name: redline-7-ab-1-web}}", ""),
    ],
)
def test_what_is_still_the_users_after_merging_is_named(merged: str, kept: str) -> None:
    assert not_merged(merged, start()) == kept


def inspected(**state: object) -> ContainerState:
    seen = {
        "Id": "c1",
        "Name": "/p-web-1",
        "State": {"Status": "running", "Pid": 7, **state},
        "Config": {"Labels": {"com.docker.compose.service": "web"}, "Healthcheck": {"Test": ["CMD", "true"]}},
        "NetworkSettings": {"Ports": {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "23456"}], "9/tcp": None}},
    }
    (read,) = read_containers(json.dumps([seen]))
    return read


def test_the_state_of_a_container_is_what_inspect_says() -> None:
    read = inspected()
    assert (read.service, read.name, read.pid, read.has_ended) == ("web", "p-web-1", 7, False)
    assert read.published == {"8080/tcp": (23456,), "9/tcp": ()}
    assert (read.health, read.said) == ("starting", "it was not run yet")
    assert read_containers("") == ()
    ended = inspected(Status="exited", Pid=0, ExitCode=3)
    assert (ended.has_ended, ended.exit_code) == (True, 3)


@pytest.mark.parametrize("key", ["Health", "Healthcheck"])
def test_the_last_result_of_a_health_check_is_said(key: str) -> None:
    log = [{"ExitCode": 0, "Output": "well"}, {"ExitCode": 1, "Output": "no\n route"}]
    read = inspected(**{key: {"Status": "unhealthy", "Log": log}})
    assert (read.health, read.said) == ("unhealthy", "it ended with code 1: no route")


def test_an_image_says_its_identifier_and_its_tcp_ports() -> None:
    exposed: dict[str, object] = {"ExposedPorts": {"9090/tcp": {}, "53/udp": {}, "8080/tcp": {}}}
    assert read_image(json.dumps([{"Id": "sha256:ab", "Config": exposed}])) == ("sha256:ab", (8080, 9090))
    assert read_image(json.dumps([{"Id": "ab", "Config": {}}])) == ("ab", ())


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def an_engine(folder: Path, name: str, text: str = "exit 1") -> ContainerEngine:
    found = ContainerEngine(str(program(folder, name, text)))
    vars(found).update(name=name, command=(found.client, "--x"))
    return found


def test_podman_is_called_by_podman_compose_with_the_options_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = an_engine(tmp_path / "bin", "podman")
    theirs = program(tmp_path / "bin", "podman-compose", 'echo "$*"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    provider = find_provider(engine)
    said = provider.call(tmp_path, ("-f", "compose.yaml"), "config")
    assert provider.command(tmp_path, "up")[:1] == (str(theirs),)
    assert said == f"--podman-path {tmp_path / 'client'} -f compose.yaml config"
    assert (tmp_path / "client").read_text() == f'#!/bin/sh\nexec {engine.client} --x "$@"\n'


def test_docker_has_its_plugin_or_its_program_and_without_both_the_hint_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    plugin = an_engine(tmp_path / "plugin", "docker", 'echo "$*"')
    assert find_provider(plugin).command(tmp_path, "up") == (plugin.client, "--x", "compose", "up")
    without = an_engine(tmp_path / "bin", "docker")
    with pytest.raises(ContainerEngineError, match="nothing here runs compose files with docker") as caught:
        find_provider(without)
    assert caught.value.hint == "install the plugin docker-compose-plugin"
    alone = program(tmp_path / "bin", "docker-compose", "echo 2.40.3")
    assert find_provider(without).command(tmp_path, "up") == (str(alone), "up")
    assert find_provider(without).version == "docker-compose 2.40.3"


def test_what_starts_afresh_with_a_service_is_all_that_depends_on_it() -> None:
    file = read_config(OF_PODMAN)
    assert file.depending_on("web") == {"web", "worker"}
    assert file.depending_on("db") == {"db", "migrations", "web", "worker"}
    assert file.depending_on("worker") == {"worker"}
