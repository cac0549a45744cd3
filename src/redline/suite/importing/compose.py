"""Read a compose file: the service that is the server, and its port in the container. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from redline.errors import Location, UsageError
from redline.suite.schema.document import parse_document

_NAME = re.compile(r"(docker-|podman-)?compose([.-][\w.-]+)?\.ya?ml")
_VARIABLE = re.compile(r"\$\{\w+(?::?-([^}]*))?[^}]*\}|\$\w+")
"""A variable, with its default if there is any."""
_HIGHEST = 65535


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


def read_compose(text: str, file: str, named: str | None = None) -> ServicePort:
    """The only service that publishes a TCP port, or the service that `named` gives, as `web` or `web:8000`.

    Raises UsageError, with the line if the file is not YAML.
    """
    services = _services(text, file)
    ports = [ServicePort(name, port) for name, service in services.items() for port in _ports(service)]
    which, command = f"{file} publishes", f"redline init {file}"
    if named is not None:
        service, _, port = named.partition(":")
        if service not in services:
            raise UsageError(f"{file} has no service `{service}`", hint=f"its services are: {', '.join(services)}")
        if port:
            return ServicePort(service, _number(named, port))
        ports = [port for port in ports if port.service == service]
        which = f"{file}: the service {service} publishes"
    if not ports:
        example = named or next(iter(services))
        hint = f"name the service that answers HTTP, and its port in the container: {command} {example}:8080"
        raise UsageError(f"{which} no single TCP port", hint=hint)
    if len(ports) > 1:
        hint = f"say which of them answers HTTP, such as {command} {ports[0]}"
        raise UsageError(f"{which} {len(ports)} ports: {', '.join(map(str, ports))}", hint=hint)
    return ports[0]


def _services(text: str, file: str) -> Mapping[str, Any]:
    """Raises UsageError."""
    try:
        # Compose files have anchors, merges and tags that Redline's own files do not have.
        written = YAML(pure=True).load(text)
    except (YAMLError, ValueError, AttributeError, IndexError, KeyError, AssertionError, RecursionError):
        parse_document(text, file)
        message = "this is not YAML that can be read"
        raise UsageError(
            message, hint="try it by hand: docker or podman compose config", place=Location(file)
        ) from None
    services = written.get("services") if isinstance(written, dict) else None
    if not isinstance(services, dict) or not services:
        raise UsageError("there are no `services`", hint="name a compose file", place=Location(file))
    return {str(name): service for name, service in services.items()}


def _ports(service: Any) -> Sequence[int]:
    """The container ports of the TCP ports that a service publishes, without ranges."""
    written = service.get("ports") if isinstance(service, dict) else None
    inside = (_inside(item) for item in written) if isinstance(written, list) else ()
    return list(dict.fromkeys(port for port in inside if port is not None))


def _inside(written: Any) -> int | None:
    """The container port of `8000`, `80:8000`, `127.0.0.1:80:8000/tcp` or a mapping; None unless it is a TCP port."""
    if isinstance(written, dict):
        text, protocol = str(written.get("target")), str(written.get("protocol", "tcp"))
    else:
        text, _, protocol = str(written).partition("/")
    digits = _VARIABLE.sub(lambda variable: variable[1] or "", text).rpartition(":")[2]
    return int(digits) if digits.isdecimal() and protocol in ("", "tcp") and 0 < int(digits) <= _HIGHEST else None


def _number(named: str, port: str) -> int:
    if not port.isdecimal() or not 0 < int(port) <= _HIGHEST:
        raise UsageError(f"{named}: `{port}` is not a port", hint=f"write a number from 1 to {_HIGHEST}")
    return int(port)
