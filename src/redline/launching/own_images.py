"""Launch users' images unchanged: a fresh container for each start, its port published on 127.0.0.1."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from redline.errors import BuildError, LaunchError
from redline.launching.builds import StandingBuild
from redline.launching.container_engine import CHOICE, CLIENTS, ContainerEngine, ContainerEngineError
from redline.launching.containers import Containers, Image
from redline.launching.failures import OF_IMAGE
from redline.launching.process import Prepared, ProcessServer, started
from redline.launching.temporary import elsewhere, private_folder
from redline.model import Variant
from redline.model.catalogue import OwnImage
from redline.ports import Building, BuildOutcome, Launch

_PORT = re.compile(r"(\d+)(?:/tcp)?")


class ImageLauncher:
    """Launcher of a user's images."""

    def __init__(self, containers: Containers) -> None:
        self._containers = containers
        self._images: dict[OwnImage, Image] = {}

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build nothing; check that the images are here. The content hash is the image's."""
        del progress, builds
        outcome = BuildOutcome()
        for variant in variants:
            try:
                outcome.hashes[variant.slug] = self._image(variant).name
                outcome.runtimes[variant.slug] = self._containers.engine().version
            except BuildError as error:
                outcome.failures[variant.slug] = error
        return outcome

    @contextmanager
    def running(self, launch: Launch) -> Iterator[ProcessServer]:
        """Start a container of the image, wait until it is ready, and remove it. Raises LaunchError."""
        variant = launch.variant
        try:
            image = self._image(variant)
        except BuildError as error:
            raise LaunchError.of(error) from error
        version, folder = self._containers.engine().version, Path(variant.catalogued.family_folder)
        built = StandingBuild(variant.catalogued, hash=image.name, folder=folder, runtime_version=version)
        try:
            scratch = private_folder("scratch")
        except OSError as error:
            message = f"{variant.slug} could not be given a scratch folder: {error.strerror}"
            raise LaunchError(message, hint=elsewhere()) from error
        prepared = Prepared(built, None, scratch, self._containers, image, advice=OF_IMAGE)
        with started(launch, prepared) as server:
            yield server

    def _image(self, variant: Variant) -> Image:
        """Return the image by its identifier, so that all starts use the same. Raises BuildError."""
        wanted = variant.catalogued.image
        assert wanted is not None, f"{variant.slug} is no image"
        if wanted not in self._images:
            try:
                identifier, exposed = look_at(self._containers.engine(), wanted.name)
                self._images[wanted] = Image(identifier, port=wanted.port or _only(exposed, wanted.name))
            except ContainerEngineError as error:
                raise BuildError(f"{variant.slug}: {error}", hint=error.hint) from error
        return self._images[wanted]


def look_at(engine: ContainerEngine, image: str) -> tuple[str, tuple[int, ...]]:
    """Return an image's identifier and the TCP ports that it exposes. Raises ContainerEngineError if it is missing."""
    try:
        text = engine.call("image", "inspect", image)
    except ContainerEngineError as error:
        if not error.is_missing:
            raise
        reason = f"{engine.name} has no image {image}, and Redline pulls none"
        raise ContainerEngineError(reason, _where_to_get(engine, image)) from error
    return read_image(text)


def read_image(text: str) -> tuple[str, tuple[int, ...]]:
    """Read the identifier and the exposed TCP ports, in order, from the output of `image inspect`."""
    (seen,) = json.loads(text)
    exposed = (_PORT.fullmatch(name) for name in (seen.get("Config") or {}).get("ExposedPorts") or {})
    return str(seen["Id"]), tuple(sorted(int(match[1]) for match in exposed if match))


def _only(exposed: tuple[int, ...], image: str) -> int:
    """Return the only port that an image exposes. Raises ContainerEngineError if there is none or several."""
    if not exposed:
        hint = "write `port: 8080` beside `image`: the port on which it listens in its container"
        raise ContainerEngineError(f"the image {image} exposes no TCP port", hint)
    if len(exposed) > 1:
        ports = ", ".join(map(str, exposed))
        hint = f"write beside `image` which of them answers HTTP, such as `port: {exposed[0]}`"
        raise ContainerEngineError(f"the image {image} exposes {len(exposed)} ports: {ports}", hint)
    return exposed[0]


def _where_to_get(engine: ContainerEngine, image: str) -> str:
    """Say how to get an image that this engine does not have; another engine may."""
    for client in CLIENTS:
        if client != engine.name and (path := shutil.which(client)):
            try:
                ContainerEngine(path).call("image", "inspect", image)
            except ContainerEngineError:
                continue
            return f"{client} has it: set {CHOICE}={client}"
    return f"build it, by `build` in redline.yaml too, or get it: {engine.name} pull {image}"
