"""A compose file: its service that a server can be. Pure."""

import re
from collections.abc import Mapping
from pathlib import PurePath

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from redline.errors import Location, UsageError

_NAME = re.compile(r"(docker-)?compose([.-][\w.-]+)?\.ya?ml")
_SHORT_PORT = re.compile(r"(?:.*:)?(\d+)(?:/tcp)?")
"""`80`, `8080:80`, `127.0.0.1:8080:80/tcp`: the last number is the port in the container."""


def is_compose_file(name: str) -> bool:
    """Whether a file is called so: `compose.yaml`, `docker-compose.yml`, `compose.dev.yaml`."""
    return _NAME.fullmatch(PurePath(name).name) is not None


def read_service(text: str, file: str) -> dict[str, object]:
    """The only service that publishes a port, as a server of redline.yaml. Raises UsageError without it, or of several.

    A compose file says neither which service is measured nor which port is HTTP's, so several are for the user.
    """
    try:
        written = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        hint = "see what `docker compose config` or `podman compose config` says of it"
        raise UsageError(f"this is no YAML: {str(error).splitlines()[0]}", hint=hint, place=Location(file)) from None
    services = written.get("services") if isinstance(written, dict) else None
    if not isinstance(services, dict) or not services:
        raise UsageError("this compose file has no services", hint="name another file", place=Location(file))
    published = [(str(name), port) for name, service in services.items() for port in _ports_of(service)]
    if len(published) != 1:
        several = ", ".join(f"{name} ({port})" for name, port in published)
        message = f"several ports are published: {several}" if several else "no service publishes a single port"
        name, port = published[0] if published else (str(next(iter(services))), 8080)
        server = f"{{name: {name}, compose: {file}, service: {name}, port: {port}}}"
        hint = f"write redline.yaml with the service that is measured, such as `servers: [{server}]`"
        raise UsageError(message, hint=hint, place=Location(file))
    ((name, port),) = published
    return {"name": name, "compose": file, "service": name, "port": port}


def _ports_of(service: object) -> list[int]:
    """The ports in the container of a service that are published; a range or a variable is none."""
    ports = service.get("ports") if isinstance(service, Mapping) else None
    targets = [port.get("target") if isinstance(port, Mapping) else port for port in ports or ()]
    matches = [_SHORT_PORT.fullmatch(str(target)) for target in targets]
    return list(dict.fromkeys(int(match[1]) for match in matches if match and 0 < int(match[1]) < 1 << 16))
