"""Launch services of users' compose files: every start is its own project, removed with everything it made."""

import hashlib
import random
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redline.errors import BuildError, LaunchError
from redline.launching import failures
from redline.launching.around import Around
from redline.launching.compose_file import (
    ComposeFile,
    ComposeFileError,
    OwnStart,
    not_merged,
    override,
    read_config,
)
from redline.launching.compose_project import (
    START_LABEL,
    Composed,
    ComposedServer,
    ComposeProject,
    PortTakenError,
)
from redline.launching.compose_provider import Provider, find_provider
from redline.launching.compose_standing import StandingServices
from redline.launching.container_engine import ContainerEngineError
from redline.launching.containers import LABEL, Containers
from redline.launching.failures import NotIts
from redline.launching.own_images import look_at
from redline.launching.process import MOST_PADDING_BYTES, PADDING, PORTS_TRIED, free_port
from redline.launching.revisions import build
from redline.launching.temporary import elsewhere, private_folder, temporary_folder
from redline.launching.variables import hidden_in, secrets_of_compose
from redline.model import Variant
from redline.model.catalogue import ComposeService
from redline.ports import Building, BuildOutcome, Launch

_HASH_DIGITS = 16


class ComposeLauncher:
    """Launcher of services of compose files. What stays up between starts is removed when `stack` ends."""

    def __init__(self, containers: Containers, stack: ExitStack) -> None:
        self._containers = containers
        self._composed: dict[str, Composed] = {}
        self._standing = StandingServices()
        stack.callback(self._standing.close)

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build the images that the files describe, once, and check that all other images are here."""
        del builds
        outcome = BuildOutcome()
        for variant in variants:
            try:
                composed = self._of(variant, progress)
            except BuildError as error:
                outcome.failures[variant.slug] = error
            else:
                outcome.hashes[variant.slug] = composed.hash
                outcome.runtimes[variant.slug] = composed.version
        return outcome

    @contextmanager
    def running(self, launch: Launch) -> Iterator[ComposedServer]:
        """Start the services that start afresh, wait until the server is ready, and remove them. Raises LaunchError."""
        variant = launch.variant
        try:
            composed = self._of(variant, lambda _building: None)
        except BuildError as error:
            raise LaunchError.of(error) from error
        for _ in range(PORTS_TRIED):
            with ExitStack() as stack:
                try:
                    folder, scratch = (
                        stack.enter_context(temporary_folder(private_folder("scratch"))) for _ in range(2)
                    )
                    beside = self._beside(launch, composed)
                    start = self._start(launch, composed, beside)
                    own = _fresh(composed, launch.variant)
                    project = ComposeProject(launch, composed, start, folder, own, beside)
                except OSError as error:
                    message = f"{variant.slug} could not be given a scratch folder: {error.strerror}"
                    raise LaunchError(message, hint=elsewhere()) from error
                around = Around(launch, project.order_of_commands(), start.port, scratch)
                stack.enter_context(around.set_up())
                stack.callback(project.close)
                try:
                    server = project.bring_up()
                except PortTakenError:
                    continue
                if beside is not None:
                    beside.has_served = True
                around.prepare()
                yield server
                return
        raise failures.port_taken(variant.slug, start.port, PORTS_TRIED, NotIts(), launch.log)

    def _beside(self, launch: Launch, composed: Composed) -> ComposeProject | None:
        """The project of the services that stay up between starts; None if all start afresh.

        Raises LaunchError and OSError.
        """
        service = _service_of(launch.variant)
        kept = composed.file.services.keys() - _fresh(composed, launch.variant)
        if not kept:
            return None

        def make(folder: Path) -> ComposeProject:
            return ComposeProject(launch, composed, self._start(launch, composed), folder, kept)

        return self._standing.of(launch, service, make)

    def _start(self, launch: Launch, composed: Composed, beside: ComposeProject | None = None) -> OwnStart:
        """Return the differences of a start. Raises LaunchError if there is no free port."""
        service = _service_of(launch.variant)
        drawn = random.Random(launch.seed)  # noqa: S311 - not a secret
        project = beside.project if beside else self._containers.new_name()
        ulimits = (word.partition("=") for word in composed.provider.engine.ulimits if "=" in word)
        return OwnStart(
            project=project,
            labels={LABEL: self._containers.lab, START_LABEL: project},
            service=service.service,
            port=free_port(),
            inside=service.port,
            images=composed.built,
            cpus=launch.placement.server_cpus,
            padding=PADDING,
            padding_bytes=0 if launch.seed is None else drawn.randrange(MOST_PADDING_BYTES),
            ulimits=tuple((name, int(values.partition(":")[0])) for name, _, values in ulimits),
        )

    def _of(self, variant: Variant, progress: Callable[[Building], None]) -> Composed:
        """Return the compose file of a variant, with its images. Raises BuildError."""
        service = _service_of(variant)
        try:
            if service.file not in self._composed:
                self._composed[service.file] = self._read(variant.slug, service, progress)
            self._composed[service.file].file.check(service.file, service.service)
        except (ContainerEngineError, ComposeFileError) as error:
            said = hidden_in(str(error), secrets_of_compose(Path(service.file)))
            raise BuildError(f"{variant.slug}: {said}", hint=error.hint) from error
        except OSError as error:
            message = f"{variant.slug}: {error.filename or service.file}: {error.strerror}"
            raise BuildError(message, hint=elsewhere()) from error
        return self._composed[service.file]

    def _read(self, slug: str, service: ComposeService, progress: Callable[[Building], None]) -> Composed:
        path = Path(service.file).absolute()
        if not path.is_file():
            raise ComposeFileError(
                f"there is no compose file {service.file}", "`compose` names it from the folder of its file"
            )
        engine = self._containers.engine()
        provider = find_provider(engine)
        with temporary_folder(private_folder("scratch")) as folder:
            text = provider.call(folder, ("-f", str(path)), "config")
            file = read_config(text)
            file.check(service.file, service.service)
            built = self._built(slug, provider, file, path, folder, progress)
        images = {name: built.get(name, described.image) for name, described in file.services.items()}
        ids = {name: look_at(engine, image)[0] for name, image in images.items() if image}
        content = hashlib.sha256(repr((text, sorted(ids.items()))).encode()).hexdigest()[:_HASH_DIGITS]
        version = f"{engine.version}; {provider.version}"
        return Composed(provider, file, path, built, content, version, secrets_of_compose(path))

    def _built(  # noqa: PLR0913, PLR0917 - what, by what, and where
        self,
        slug: str,
        provider: Provider,
        file: ComposeFile,
        path: Path,
        folder: Path,
        progress: Callable[[Building], None],
    ) -> dict[str, str]:
        """Build the images that the file describes; return them by service, under names of the lab's."""
        project = self._containers.new_name()
        images = {
            name: f"redline/{self._containers.lab}:{project.rpartition('-')[2]}-{name}"
            for name, service in file.services.items()
            if service.is_built
        }
        start = OwnStart(project, {LABEL: self._containers.lab}, next(iter(file.services)), 1, 1, images)
        (folder / "start.yaml").write_text(override(file, start))
        common = ("-p", project, "-f", str(path), "-f", str(folder / "start.yaml"))
        try:
            merged = provider.call(folder, common, "config")
        except ContainerEngineError as error:
            hint = "get a newer version: docker compose from 2.24.4 on, or podman-compose from 1.4"
            message = f"{provider.version} cannot merge what Redline adds to {path.name}: {error}"
            raise ContainerEngineError(message, hint) from error
        if theirs := not_merged(merged, start):
            message = f"{provider.name} keeps {theirs}, which a start would share with what you run"
            raise ComposeFileError(message, f"write {path.name} as one file, without `include` and `extends`")
        if images:
            command = shlex.join(provider.command(folder, *common, "build", *images))
            hint = f"build it by hand: {provider.name} -f {path} build"
            build(command, path.parent, slug, folder / "build.log", progress, hint)
        return images


def _fresh(composed: Composed, variant: Variant) -> frozenset[str]:
    """The services that start for each start of a server."""
    service = _service_of(variant)
    if service.fresh == "service":
        return composed.file.depending_on(service.service)
    return frozenset(composed.file.services)


def _service_of(variant: Variant) -> ComposeService:
    service = variant.catalogued.compose
    assert service is not None, f"{variant.slug} is no service"
    return service
