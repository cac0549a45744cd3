"""Compare what catalogues pin with what registries have."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from redline.cli.contracts import OutdatedPackage, OutdatedResult, Registry, UnansweredPackages
from redline.extras.outdated.build_files import PinnedPackage, read_pins
from redline.extras.outdated.registries import Registries, UnansweredError, bases_of
from redline.extras.outdated.versions import is_newer

_AT_ONCE = 8
_Package = tuple[Registry, str]


def find_outdated(
    catalogues: Iterable[Path], near: Callable[[Path], str], on_progress: Callable[[int, int], None]
) -> OutdatedResult:
    """What registries have that catalogues have not. `on_progress` gets the number of packages known, and of all.

    Raises UsageError for a build file that cannot be read.
    """
    pins = [pin for catalogue in catalogues for pin in read_pins(catalogue)]
    packages: dict[_Package, PinnedPackage] = {(pin.registry, pin.package): pin for pin in pins}
    newest, reasons = _ask(packages, on_progress)
    rows: dict[tuple[_Package, str], list[str]] = {}
    for pin in pins:
        latest = newest.get((pin.registry, pin.package))
        if latest is not None and is_newer(latest, pin.version, pin.parts):
            rows.setdefault(((pin.registry, pin.package), pin.version), []).append(near(pin.file))
    return OutdatedResult(
        packages=len(packages),
        outdated=tuple(
            OutdatedPackage(
                registry=package[0], package=package[1], version=version, newest=newest[package], files=tuple(files)
            )
            for (package, version), files in sorted(rows.items())
        ),
        unanswered=tuple(
            UnansweredPackages(registry=registry, packages=tuple(sorted(names)), reason=reason)
            for (registry, reason), names in sorted(reasons.items())
        ),
    )


def _ask(
    packages: dict[_Package, PinnedPackage], on_progress: Callable[[int, int], None]
) -> tuple[dict[_Package, str], dict[tuple[Registry, str], list[str]]]:
    """The newest releases, and why others are not known."""
    registries = Registries(bases_of(os.environ, Path.home()))
    newest: dict[_Package, str] = {}
    reasons: dict[tuple[Registry, str], list[str]] = {}
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        asked: dict[Future[str], _Package] = {
            pool.submit(registries.newest, pin): package for package, pin in packages.items()
        }
        for known, answer in enumerate(as_completed(asked), 1):
            package = asked[answer]
            try:
                newest[package] = answer.result()
            except UnansweredError as error:
                reasons.setdefault((package[0], str(error)), []).append(package[1])
            on_progress(known, len(asked))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return newest, reasons
