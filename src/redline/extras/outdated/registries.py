"""Ask registries for the newest stable release of a package."""

import json
import re
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from redline.cli.contracts import Registry
from redline.extras.outdated.build_files import PinnedPackage
from redline.extras.outdated.versions import newest
from redline.quantities import clip
from redline.version import VERSION

MAVEN = "https://repo.maven.apache.org/maven2"
CRATES = "https://index.crates.io"
NPM = "https://registry.npmjs.org"
PYPI = "https://pypi.org"
GO = "https://proxy.golang.org"

_TIMEOUT_S = 10.0
_LARGEST = 64 * 2**20
_SCALA = ("_3", "_2.13")
_NOT_THERE = (404, 410)
_MAVEN_VERSION = re.compile(r"<version>\s*([^<\s]+)\s*</version>")
_MIRROR = re.compile(r"<mirror>.*?<url>\s*([^<\s]+)\s*</url>.*?</mirror>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class UnansweredError(Exception):
    """Why the newest release of a package is not known."""


class Registries:
    """The registries by their addresses. One that cannot be reached is not asked again."""

    def __init__(self, bases: Mapping[Registry, str]) -> None:
        self._bases = bases
        # One context for all requests: to read the certificates takes long.
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self._opener = urllib.request.build_opener(https)
        self._unreachable: dict[str, str] = {}
        self._ask: Mapping[Registry, Callable[[PinnedPackage], str | None]] = {
            "Maven": self._maven,
            "crates.io": self._crates,
            "npm": self._npm,
            "PyPI": self._pypi,
            "Go": self._go,
        }

    def newest(self, pin: PinnedPackage) -> str:
        """The newest stable release of the package, whichever is pinned. Raises UnansweredError."""
        try:
            found = self._ask[pin.registry](pin)
        except (ValueError, KeyError, TypeError, AttributeError):
            found = None
        if not isinstance(found, str) or not found:
            raise UnansweredError(f"{_host(self._bases[pin.registry])}: an answer without versions")
        return found

    def _maven(self, pin: PinnedPackage) -> str | None:
        """Ask the registry, then the repositories of the pom.xml."""
        group, _, artifact = pin.package.partition(":")
        others = [url for url in pin.repositories if url.rstrip("/") != MAVEN]
        bases = dict.fromkeys((self._bases["Maven"], *others))
        paths = [f"{group.replace('.', '/')}/{artifact}{suffix}" for suffix in (_SCALA if pin.is_scala else ("",))]
        for base in bases:
            for path in paths:
                content = self._get_if_there(base, f"{quote(path)}/maven-metadata.xml")
                if content is not None:
                    return newest(_MAVEN_VERSION.findall(content))
        raise UnansweredError(f"{', '.join(map(_host, bases))}: not found")

    def _crates(self, pin: PinnedPackage) -> str | None:
        name = pin.package.lower()
        folder = {1: "1", 2: "2", 3: f"3/{name[0]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
        lines = map(json.loads, self._get(pin, f"{folder}/{quote(name)}").splitlines())
        return newest(line["vers"] for line in lines if not line["yanked"])

    def _npm(self, pin: PinnedPackage) -> str | None:
        version: str = json.loads(self._get(pin, f"{quote(pin.package, safe='@')}/latest"))["version"]
        return version

    def _pypi(self, pin: PinnedPackage) -> str | None:
        releases = json.loads(self._get(pin, f"pypi/{quote(pin.package)}/json"))["releases"]
        return newest(version for version, files in releases.items() if any(not file.get("yanked") for file in files))

    def _go(self, pin: PinnedPackage) -> str | None:
        escaped = re.sub(r"[A-Z]", lambda found: "!" + found[0].lower(), pin.package)
        version: str = json.loads(self._get(pin, f"{quote(escaped, safe='/!')}/@latest"))["Version"]
        return version

    def _get(self, pin: PinnedPackage, path: str) -> str:
        base = self._bases[pin.registry]
        content = self._get_if_there(base, path)
        if content is None:
            raise UnansweredError(f"{_host(base)}: not found")
        return content

    def _get_if_there(self, base: str, path: str) -> str | None:
        """What is at the path of a registry; None if it has nothing there. Raises UnansweredError."""
        host = _host(base)
        if host in self._unreachable:
            raise UnansweredError(self._unreachable[host])
        try:
            request = _request(f"{base.rstrip('/')}/{path}")
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                content: bytes = answer.read(_LARGEST)
            return content.decode()
        except HTTPError as error:
            error.close()
            if error.code in _NOT_THERE:
                return None
            raise UnansweredError(f"{host}: HTTP {error.code}") from None
        except (URLError, OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
            self._unreachable[host] = f"{host}: {clip(str(text).lower(), 100)}"
            raise UnansweredError(self._unreachable[host]) from None


def bases_of(environ: Mapping[str, str], home: Path) -> dict[Registry, str]:
    """The addresses of the registries: those of the usual variables and of Maven's settings, or the public ones."""
    proxies = [each for each in re.split(r"[,|]", environ.get("GOPROXY", "")) if each.startswith("http")]
    return {
        "Maven": _mirror(home / ".m2" / "settings.xml") or MAVEN,
        "crates.io": CRATES,
        "npm": environ.get("npm_config_registry") or NPM,
        "PyPI": (environ.get("PIP_INDEX_URL") or PYPI).rstrip("/").removesuffix("/simple"),
        "Go": next(iter(proxies), GO),
    }


def _mirror(settings: Path) -> str | None:
    try:
        text = settings.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    mirrors: Iterable[str] = _MIRROR.findall(_COMMENT.sub("", text))
    return next(iter(mirrors), None)


def _request(url: str) -> urllib.request.Request:
    """A request, with the user and password of the address in a header that no other address gets."""
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if parts.scheme not in {"http", "https"}:
        raise URLError("not an address of HTTP")
    request = urllib.request.Request(bare, headers={"User-Agent": f"redline/{VERSION}"})  # noqa: S310 - checked
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    return request


def _host(base: str) -> str:
    """The host of an address, which may be wrong, without its user and password."""
    return base.partition("://")[2].rpartition("@")[2].partition("/")[0] or "no host"
