"""Describe servers outside the catalogue: a command, containers, an address, or a revision."""

import re
import shlex
from collections.abc import Mapping, Sequence

from redline.model import AttachedServer, Variant
from redline.model.catalogue import OwnImage, option_text
from redline.quantities import size

_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")
"""Words that need no quotes, including those with `{port}`."""


def own_server(variant: Variant, path: str = "", *, opens_websocket: bool = False) -> str:
    """The command, the containers, the URL with this path, or the revision; empty for a server of the catalogue."""
    entry = variant.entry
    if isinstance(entry, AttachedServer):
        places = ", ".join(place.text for place in entry.way.connect)
        through = f" through the proxy {entry.way.proxy.text}" if entry.way.proxy else ""
        scheme = ("ws" if opens_websocket else "http") + ("s" if variant.tls else "")
        url = f"{scheme}://{entry.host}:{entry.port}{path}"
        return f"{url}{places and f' at {places}'}{through}"
    if entry.checkout is not None:
        return str(entry.checkout.revision)
    if entry.image is not None:
        return f"a container of {entry.image.name}{_limits(entry.image)}"
    if entry.compose is not None:
        return f"the service {entry.compose.service} of {entry.compose.file}, in containers"
    if entry.launcher is not None:
        return f"started by the launcher {entry.launcher}{_settings(variant)}"
    return _written(entry.start.command) if entry.build is None else ""


def _settings(variant: Variant) -> str:
    """`, with app=shop:app`; empty without settings."""
    settings = [f"{name}={option_text(value)}" for name, value in variant.options.items()]
    return f", with {', '.join(settings)}" if settings else ""


def _limits(image: OwnImage) -> str:
    """`, with 2 CPUs and 512 MiB of memory`; empty without limits."""
    cpus = [] if image.cpus is None else [f"{image.cpus:g} {'CPU' if image.cpus == 1 else 'CPUs'}"]
    memory = [] if image.memory_bytes is None else [f"{size(image.memory_bytes)} of memory"]
    return f", with {' and '.join([*cpus, *memory])}" if cpus or memory else ""


def servers_said(variants: Sequence[Variant]) -> dict[str, str]:
    """Describe the user's own servers by slug; if any were already running, all servers, with which of them were."""
    said = {variant.slug: text for variant in variants if (text := own_server(variant))}
    said |= _environments([variant for variant in variants if variant.slug in said])
    if len({variant.is_attached for variant in variants}) < 2:
        return said
    return {
        variant.slug: f"{said.get(variant.slug, variant.slug)} "
        f"({'already running' if variant.is_attached else 'started afresh'})"
        for variant in variants
    }


def _environments(variants: Sequence[Variant]) -> dict[str, str]:
    """Commands that several servers share, by slug, behind the variables that differ: `GOGC=50 ./shop {port}`."""
    said = dict[str, str]()
    for variant in variants:
        text = own_server(variant)
        alike = [other for other in variants if own_server(other) == text]
        differing = {name for other in alike for name, _ in {*_env(variant).items()} ^ {*_env(other).items()}}
        own = [f"{name}={shlex.quote(value)} " for name, value in _env(variant).items() if name in differing]
        said[variant.slug] = "".join([*own, text])
    return said


def _env(variant: Variant) -> Mapping[str, str]:
    """Its variables as the user writes them: those of the lab's own environment by name."""
    return {} if isinstance(variant.entry, AttachedServer) else variant.entry.start.env


def _written(command: tuple[str, ...]) -> str:
    """The command as a user writes it; for a shell command, only its line."""
    if command[:2] == ("sh", "-c") and len(command) == 3:
        return command[2]
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in command)
