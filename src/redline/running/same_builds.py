"""Whether two revisions are started from the same bytes, so that there is nothing to compare."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.git import git
from redline.launching.checkouts import Differences, differences
from redline.launching.stamps import stamps
from redline.linux.opened import OpenedFiles
from redline.model import Cell, Plan, SameBuilds, Variant
from redline.ports import BuildOutcome, Launch
from redline.running.record import Tools

_NAMED = 5


def same_builds(plan: Plan, built: BuildOutcome, tools: Tools) -> SameBuilds | None:
    """Return why two built revisions are the same server; None if they are not, or if that is not sure.

    The whole checkouts are compared, with what the builds left there. What differs is no part of the servers if nobody
    opens it while each is started, answers every request of the load, and is stopped. That a file is a document, or
    that the build did not need it, is no proof. What builds made may differ by stamps.
    """
    variants = plan.suite.variants
    folders = [built.checkouts[variant.slug] for variant in variants if variant.slug in built.checkouts]
    if len(variants) != 2 or len(folders) != 2 or plan.suite.builds > 1 or not _start_alike(*variants):
        return None
    try:
        found = differences(*folders)
        if found is None:
            return None
        stamped = _Stamped((folders[0], folders[1]), variants)
        if any(not stamped.alone(name) for variant in variants for name in _started(variant, found)):
            return None
        left = [name for name in found.differing if name not in stamped.found]
        if left and _opens_any(found, stamped, variants, plan.cells.values(), tools):
            return None
    except (OSError, LaunchError, DriveError):  # the measurement says what is wrong
        return None
    unopened = tuple(name for name in found.differing if name not in stamped.found)
    return SameBuilds(
        servers=(variants[0].slug, variants[1].slug),
        files=found.files,
        unopened=len(unopened),
        named=unopened[:_NAMED],
        stamped=tuple(f"{name} ({', '.join(kinds)})" for name, kinds in stamped.found.items()),
    )


class _Stamped:
    """Which files, among those that the servers use, the builds made, and made differ by stamps alone."""

    def __init__(self, roots: tuple[Path, Path], variants: Sequence[Variant]) -> None:
        self.roots, self.found = roots, dict[str, tuple[str, ...]]()
        first, second = (variant.catalogued.checkout for variant in variants)
        assert first is not None
        assert second is not None
        self._commits = first.revision.commit, second.revision.commit
        listed = [git(root, "ls-files", "-z") for root in roots]
        self._is_known = not any(done.returncode for done in listed)
        self._tracked = {name for done in listed for name in done.stdout.split("\0")}

    def alone(self, name: str) -> bool:
        """Whether a file that differs does so by stamps alone. Raises OSError."""
        if name not in self.found and self._is_known and name not in self._tracked:
            files = self.roots[0] / name, self.roots[1] / name
            plain = all(file.is_file() and not file.is_symlink() for file in files)
            if plain and (kinds := stamps(files, self.roots, self._commits)):
                self.found[name] = kinds
        return name in self.found

    def alone_all(self, paths: Iterable[str]) -> bool:
        """Whether all these files of either checkout do. Raises OSError."""
        inside = [
            next((os.path.relpath(path, root) for root in self.roots if Path(path).is_relative_to(root)), None)
            for path in paths
        ]
        return all(name is not None and self.alone(name) for name in inside)


def _start_alike(first: Variant, second: Variant) -> bool:
    """Whether all but the revision is the same: the command, its environment, what is done around it."""
    texts = []
    for variant in (first, second):
        known = variant.model_dump(mode="json")
        known["entry"].pop("name")
        known["entry"]["checkout"].pop("revision")
        texts.append(known)
    return texts[0] == texts[1]


def _started(variant: Variant, found: Differences) -> set[str]:
    """The files that differ and that the command names, so that no start is needed to see that they matter."""
    checkout = variant.catalogued.checkout
    below = checkout.below if checkout is not None else ""
    named = {os.path.normpath(Path(below) / word) for word in variant.catalogued.start.command}
    return named & set(found.differing)


def _opens_any(
    found: Differences, stamped: "_Stamped", variants: Iterable[Variant], cells: Iterable[Cell], tools: Tools
) -> bool:
    """Whether anybody opens a file that differs, or lists a folder whose names do, while the servers run and answer.

    Python lists the folders of its modules when it starts: no matter, where the names of documents alone differ.
    Raises OSError, LaunchError and DriveError.
    """
    roots, ways = stamped.roots, tuple(cells)
    files = {root / name: name for root in roots for name in found.differing if (root / name).parent.is_dir()}
    if any(file.is_file() and os.lstat(file).st_nlink > 1 and not stamped.alone(name) for file, name in files.items()):
        return True  # it has another name, by which it may be opened
    listings = [root / name for root in roots for name in found.listings]
    only_one = [name for name in found.differing if len({os.path.lexists(root / name) for root in roots}) > 1]
    of_code = {root / Path(name).parent for root in roots for name in only_one if not _is_document(name)}
    harmless = {str(folder) for folder in {*listings} - of_code}
    with OpenedFiles(files, listings) as opened, tempfile.TemporaryDirectory() as logs:
        for variant in reversed(tuple(variants)):
            with tools.launcher.running(
                Launch(variant, tools.placement, Path(logs, "server.log"), log_is_kept=False)
            ) as server:
                if not stamped.alone_all(opened.seen() - harmless):
                    return True
                own = (cell for cell in ways if cell.variant.slug == variant.slug)
                wrong = any(tools.driver.verify(cell, server.endpoint) is not None for cell in own)
                if wrong or server.death() is not None:
                    return True
            if not stamped.alone_all(opened.seen()):
                return True
    return False


def _is_document(name: str) -> bool:
    stem, extension = os.path.splitext(os.path.basename(name))  # noqa: PTH119, PTH122 - texts
    return extension in {".md", ".rst", ".adoc"} or stem in {"README", "LICENSE", "NOTICE", "CHANGELOG"}
