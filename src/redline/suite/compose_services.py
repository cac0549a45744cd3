"""Read a compose file: the service that is the server, and its port in the container. Pure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from redline.errors import Location, UsageError
from redline.lazily import dataclass
from redline.schema.document import parse_document

_NAME = re.compile(r"(docker-|podman-)?compose([.-][\w.-]+)?\.ya?ml")
_VARIABLE = re.compile(r"\$\{(?P<braced>\w+)(?:(?P<empty>:?)-(?P<default>[^}]*))?[^}]*\}|\$(?P<bare>\w+)")
"""A variable, with its default if there is any; after `:-` that holds for an empty variable too."""
_HIGHEST = 65535
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ServicePort:
    """A service, and the port on which it listens in its container."""

    service: str
    port: int

    def __str__(self) -> str:
        return f"{self.service}:{self.port}"


def is_compose_file(name: str) -> bool:
    """Whether a file has a compose file's name: `compose.yaml`, `docker-compose.yml`, `compose.prod.yaml`."""
    return _NAME.fullmatch(PurePath(name).name) is not None


def read_compose(text: str, file: str, named: str | None = None, variables: Mapping[str, str] = _NONE) -> ServicePort:
    """The only service that publishes a TCP port, or the service that `named` gives, as `web` or `web:8000`.

    `variables` are those that the file may name. Services of other files, which it includes or extends, are not read:
    where that matters, an error says so. Raises UsageError, with the line if the file is not YAML.
    """
    written = _written(text, file)
    services = {str(name): service for name, service in (written.get("services") or {}).items()}
    includes = "include" in written
    ports = [ServicePort(name, port) for name, service in services.items() for port in _ports(service, variables)]
    which, command = f"{file} publishes", f"redline init {file}"
    if named is not None:
        service, _, port = named.partition(":")
        if service not in services and not (includes and port):
            left = f"; what it includes is not read: add the port, {command} {service}:8080" if includes else ""
            hint = f"its services are: {', '.join(services)}{left}"
            raise UsageError(f"{file} has no service `{service}`", hint=hint)
        if port:
            return ServicePort(service, _number(named, port))
        ports = [port for port in ports if port.service == service]
        which = f"{file}: the service {service} publishes"
    if not ports:
        example = named or next(iter(services), "web")
        chosen = services if named is None else {example: services[example]}
        hint = f"name the service that answers HTTP, and its port in the container: {command} {example}:8080"
        raise UsageError(f"{which} no single TCP port{_not_read(written, chosen, variables)}", hint=hint)
    if len(ports) > 1:
        hint = f"say which of them answers HTTP, such as {command} {ports[0]}"
        raise UsageError(f"{which} {len(ports)} ports: {', '.join(map(str, ports))}", hint=hint)
    return ports[0]


def _written(text: str, file: str) -> Mapping[str, Any]:
    """Raises UsageError."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - this takes long
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        # Compose files have anchors, merges and tags that Redline's own files do not have.
        written = YAML(pure=True).load(text)
    except (YAMLError, ValueError, AttributeError, IndexError, KeyError, AssertionError, RecursionError):
        parse_document(text, file)
        message = "this is not YAML that can be read"
        raise UsageError(
            message, hint="try it by hand: docker or podman compose config", place=Location(file)
        ) from None
    known = written if isinstance(written, dict) else {}
    services = known.get("services")
    if not (services is None and "include" in known) and (not isinstance(services, dict) or not services):
        raise UsageError("there are no `services`", hint="name a compose file", place=Location(file))
    return known


def _not_read(written: Mapping[str, Any], services: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """What may say more of the ports and is not read, in words; empty if there is nothing."""
    left = ["what it includes"] if "include" in written else []
    for name, service in services.items():
        if isinstance(service, dict):
            left += [f"what {name} extends"] if "extends" in service else []
            ports = service.get("ports")
            left += [
                f"`{unset}`, which is not set"
                for item in (ports if isinstance(ports, list) else ())
                for unset in _unset(_container_side(item)[0], variables)
            ]
    return f"; not known is {' and '.join(dict.fromkeys(left))}" if left else ""


def _ports(service: Any, variables: Mapping[str, str]) -> Sequence[int]:
    """The container ports of the TCP ports that a service publishes, without ranges."""
    written = service.get("ports") if isinstance(service, dict) else None
    inside = (_inside(item, variables) for item in written) if isinstance(written, list) else ()
    return list(dict.fromkeys(port for port in inside if port is not None))


def _inside(written: Any, variables: Mapping[str, str]) -> int | None:
    """The container port of `8000`, `80:8000`, `127.0.0.1:80:8000/tcp` or a mapping; None unless it is a TCP port."""
    text, protocol = _container_side(written)
    digits = _VARIABLE.sub(lambda found: _value(found, variables), text).rpartition(":")[2]
    return int(digits) if digits.isdecimal() and protocol in ("", "tcp") and 0 < int(digits) <= _HIGHEST else None


def _container_side(written: Any) -> tuple[str, str]:
    """What has the port in the container at its end, and the protocol, as they are written."""
    if isinstance(written, dict):
        return str(written.get("target")), str(written.get("protocol", "tcp"))
    text, _, protocol = str(written).partition("/")
    return text, protocol


def _value(found: "re.Match[str]", variables: Mapping[str, str]) -> str:
    """The value of a variable, or its default; empty without any."""
    name, default = found["braced"] or found["bare"], found["default"]
    value = variables.get(name)
    if default is not None and (value is None or (found["empty"] and not value)):
        return default
    return value or ""


def _unset(text: str, variables: Mapping[str, str]) -> Sequence[str]:
    """The variables without a value at the end of a port's text, such as `${PORT}`."""
    found = [match for match in _VARIABLE.finditer(text) if match.end() == len(text)]
    return [match[0] for match in found if not _value(match, variables)]


def _number(named: str, port: str) -> int:
    if not port.isdecimal() or not 0 < int(port) <= _HIGHEST:
        raise UsageError(f"{named}: `{port}` is not a port", hint=f"write a number from 1 to {_HIGHEST}")
    return int(port)
