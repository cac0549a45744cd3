"""Read a compose file, and write the file that changes it for a single start. Pure.

A start must not collide with another start, nor with the user's project of the same file: its names, ports, volumes
and networks are its own, and all of them have labels, by which they are removed.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

_CONDITIONS = ("service_healthy", "service_completed_successfully")
"""The states of other services for which a service can wait before it starts."""
DEFAULT_NETWORK = "default"
_SEE = "write it as compose files have it: https://docs.docker.com/reference/compose-file"


class ComposeFileError(Exception):
    """The file cannot be used, with a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class ServiceOfFile:
    """A service. `needs` are the conditions on others by name, `ulimits` those that the file sets."""

    image: str | None
    is_built: bool
    has_ports: bool
    has_name: bool
    network_mode: str | None
    replicas: int
    needs: Mapping[str, str]
    ulimits: frozenset[str]


@dataclass(frozen=True)
class ComposeFile:
    """A compose file: its services by name, and the volumes and networks that it makes."""

    services: Mapping[str, ServiceOfFile]
    volumes: tuple[str, ...]
    networks: tuple[str, ...]

    def check(self, file: str, service: str) -> None:
        """Raise ComposeFileError unless this service can be a server."""
        described = self.services.get(service)
        if described is None:
            known = ", ".join(self.services) or "none"
            raise ComposeFileError(f"{file} has no service `{service}`", f"its services are: {known}")
        if described.network_mode is not None:
            message = f"the service {service} of {file} has `network_mode: {described.network_mode}`"
            hint = "remove that: Redline publishes a port of its own, which needs a network of the project"
            raise ComposeFileError(message, hint)
        if described.replicas != 1:
            message = f"the service {service} of {file} has {described.replicas} containers, and Redline loads one"
            raise ComposeFileError(message, "write `replicas: 1`, or name a service that is in front of them")

    def depending_on(self, service: str) -> frozenset[str]:
        """A service, and all that start after it because they need it."""
        known, size = frozenset({service}), 0
        while len(known) > size:
            size = len(known)
            known |= {name for name, other in self.services.items() if known & other.needs.keys()}
        return known

    def is_needed(self, service: str) -> bool:
        """Whether another service depends on it."""
        return any(service in other.needs for other in self.services.values())

    @cached_property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Group the services: those of a group start when those before it are healthy, or have completed."""
        levels: dict[str, int] = {}

        def level(name: str, above: frozenset[str]) -> int:
            if name not in levels:
                needs = self.services[name].needs
                levels[name] = max(
                    (
                        level(other, above | {name}) + (condition in _CONDITIONS)
                        for other, condition in needs.items()
                        if other in self.services and other not in above
                    ),
                    default=0,
                )
            return levels[name]

        for name in self.services:
            level(name, frozenset({name}))
        numbers = sorted(set(levels.values()))
        return tuple(tuple(name for name in self.services if levels[name] == number) for number in numbers)

    @property
    def completing(self) -> frozenset[str]:
        """Services that have to end successfully before another starts."""
        needs = (needed for service in self.services.values() for needed in service.needs.items())
        return frozenset(name for name, condition in needs if condition == _CONDITIONS[1])


def read_config(text: str) -> ComposeFile:
    """Read the output of `config` of docker compose or podman-compose. Raises ComposeFileError."""
    config = _config(text)
    services = {
        str(name): _service(f"services.{name}", _mapping(f"services.{name}", written))
        for name, written in _mapping("services", config.get("services")).items()
    }
    networks = config.get("networks") or {DEFAULT_NETWORK: None}
    return ComposeFile(services, _own("volumes", config.get("volumes")), _own("networks", networks))


def not_merged(text: str, start: "OwnStart") -> str:
    """Say what the merged file, as `config` prints it, still shares with the user; empty if all names are its own.

    Anything under a user's name would be removed with the start.
    """
    config = _config(text)
    for part in ("volumes", "networks"):
        for name in _own(part, config.get(part)):
            called = (config[part][name] or {}).get("name", f"{start.project}_{name}")
            if called != f"{start.project}_{name}":
                return f"`name: {called}` of `{part}.{name}`"
    for name, service in (config.get("services") or {}).items():
        called = service.get("container_name")
        if called is not None and called != f"{start.project}-{name}":
            return f"`container_name: {called}` of `services.{name}`"
        if name != start.service and service.get("ports"):
            return f"`ports` of `services.{name}`"
    return ""


def _config(text: str) -> dict[str, Any]:
    """Parse YAML. Raises ComposeFileError for other text."""
    try:
        read = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ComposeFileError(f"`config` printed no YAML: {error}", "try it by hand") from error
    if read is not None and not isinstance(read, dict):
        raise ComposeFileError("the file is no mapping", _SEE)
    return read or {}


def _mapping(place: str, written: object) -> Mapping[str, Any]:
    """Return a mapping, empty if left out. Docker compose has validated it; podman-compose has not."""
    if written is not None and not isinstance(written, Mapping):
        raise ComposeFileError(f"`{place}` is no mapping", _SEE)
    return written or {}


def _own(part: str, written: object) -> tuple[str, ...]:
    """Return the names of the volumes or networks that the project makes, without external ones."""
    named = _mapping(part, written).items()
    return tuple(str(name) for name, about in named if not _mapping(f"{part}.{name}", about).get("external"))


def _service(place: str, written: Mapping[str, Any]) -> ServiceOfFile:
    deploy, needs = _mapping(f"{place}.deploy", written.get("deploy")), written.get("depends_on")
    if isinstance(needs, list):
        needs = dict.fromkeys(needs)
    replicas, image = written.get("scale", deploy.get("replicas", 1)), written.get("image")
    if image is not None and not isinstance(image, str):
        raise ComposeFileError(f"`{place}.image` is no name of an image", _SEE)
    if not re.fullmatch(r"\d{1,6}", str(1 if replicas is None else replicas)):
        raise ComposeFileError(f"`{place}` has `replicas: {replicas}`, which is no number", _SEE)
    conditions = {
        str(name): str(_mapping(f"{place}.depends_on.{name}", about).get("condition", "service_started"))
        for name, about in _mapping(f"{place}.depends_on", needs).items()
    }
    return ServiceOfFile(
        image=image,
        is_built=written.get("build") is not None,
        has_ports=bool(written.get("ports")),
        has_name=written.get("container_name") is not None,
        network_mode=written.get("network_mode"),
        replicas=1 if replicas is None else int(replicas),
        needs=conditions,
        ulimits=frozenset(_mapping(f"{place}.ulimits", written.get("ulimits"))),
    )


@dataclass(frozen=True)
class OwnStart:
    """The differences of a start: the project, its labels, the published port, and the cores of all services.

    `images` are the built images, by service; `ulimits` have names and values. The environment of the server is
    larger by a variable of `padding` bytes.
    """

    project: str
    labels: Mapping[str, str]
    service: str
    port: int
    inside: int
    images: Mapping[str, str]
    cpus: tuple[int, ...] = ()
    padding: str = ""
    padding_bytes: int = 0
    ulimits: tuple[tuple[str, int], ...] = ()


def override(file: ComposeFile, start: OwnStart) -> str:
    """Return the file that is merged into the compose file.

    `!override` and `!reset` replace lists, which are otherwise appended to.
    """
    services = {name: _overridden(name, service, start) for name, service in file.services.items()}
    labels = {"labels": dict(start.labels)}
    volumes = {name: _flow({"name": f"{start.project}_{name}", **labels}) for name in file.volumes}
    networks = {name: _flow({"name": f"{start.project}_{name}", **labels}) for name in file.networks}
    parts = {"services": services, "volumes": volumes, "networks": networks}
    lines = ["x-podman: {in_pod: false}"]
    for part, entries in parts.items():
        if entries:
            lines += [f"{part}:", *(f"  {json.dumps(name)}: {text}" for name, text in entries.items())]
    return "\n".join([*lines, ""])


def _overridden(name: str, service: ServiceOfFile, start: OwnStart) -> str:
    """The overrides of a service: it publishes only the port of the server."""
    limits = {limit: {"soft": value, "hard": value} for limit, value in start.ulimits if limit not in service.ulimits}
    values: dict[str, object] = {
        "labels": dict(start.labels),
        "restart": "no",  # a server that ends has failed
        "pull_policy": "never",
        **({"container_name": f"{start.project}-{name}"} if service.has_name else {}),
        **({"image": start.images[name]} if name in start.images else {}),
        **({"cpuset": ",".join(map(str, start.cpus))} if start.cpus else {}),
        **({"ulimits": limits} if limits else {}),
    }
    tagged: list[str] = []
    if name == start.service:
        if start.padding_bytes:
            values["environment"] = {start.padding: "x" * start.padding_bytes}
        published = json.dumps([f"127.0.0.1:{start.port}:{start.inside}"])
        tagged = [f'"ports": {"!override " if service.has_ports else ""}{published}']
    elif service.has_ports:
        tagged = ['"ports": !reset []']
    return "{" + ", ".join([*_pairs(values), *tagged]) + "}"


def _pairs(values: Mapping[str, object]) -> Iterable[str]:
    # A `$` begins a variable in compose files; `$$` is a literal `$`.
    return (f"{json.dumps(key)}: {json.dumps(value).replace('$', '$$')}" for key, value in values.items())


def _flow(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(_pairs(values)) + "}"


@dataclass(frozen=True)
class ContainerState:
    """A container of a project, as `container inspect` reports it. `health` is empty without a check."""

    id: str
    name: str
    service: str
    status: str
    pid: int
    exit_code: int
    health: str
    said: str
    published: Mapping[str, tuple[int, ...]]

    @property
    def has_ended(self) -> bool:
        """Whether it ran, and has ended."""
        return self.status in ("exited", "stopped", "dead")


def read_containers(text: str) -> tuple[ContainerState, ...]:
    """Read the output of `container inspect` for a project's containers, named by their services."""
    return tuple(sorted(map(_state, json.loads(text or "[]")), key=lambda state: (state.service, state.name)))


def _state(seen: Mapping[str, Any]) -> ContainerState:
    state = seen.get("State") or {}
    health = state.get("Health") or state.get("Healthcheck") or {}
    checked = (seen.get("Config") or {}).get("Healthcheck") or {}
    has_check = bool(checked.get("Test")) and checked["Test"][0] != "NONE"
    last = (health.get("Log") or [{}])[-1]
    ports = (seen.get("NetworkSettings") or {}).get("Ports") or {}
    return ContainerState(
        id=seen["Id"],
        name=str(seen["Name"]).lstrip("/"),
        service=((seen.get("Config") or {}).get("Labels") or {}).get("com.docker.compose.service", ""),
        status=str(state.get("Status", "")),
        pid=int(state.get("Pid") or 0),
        exit_code=int(state.get("ExitCode") or 0),
        health=str(health.get("Status") or "starting") if has_check else "",
        said=_health_text(last),
        published={
            inside: tuple(int(binding["HostPort"]) for binding in bindings or () if binding.get("HostPort"))
            for inside, bindings in ports.items()
        },
    )


def _health_text(result: Mapping[str, Any]) -> str:
    """Describe the last result of a health check."""
    if not result:
        return "it was not run yet"
    output = " ".join(str(result.get("Output") or "").split())
    return f"it ended with code {result.get('ExitCode')}{f': {output[:200]}' if output else ' and said nothing'}"
