"""Whether two revisions are started from the same bytes, so that there is nothing to compare."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.launching.checkouts import Differences, differences
from redline.linux.opened import OpenedFiles
from redline.model import Cell, Plan, SameBuilds, Variant
from redline.ports import BuildOutcome, Launch
from redline.running.record import Tools

_NAMED = 5


def same_builds(plan: Plan, built: BuildOutcome, tools: Tools) -> SameBuilds | None:
    """Return why two built revisions are the same server; None if they are not, or if that is not sure.

    The whole checkouts are compared, with what the builds left there. What differs is no part of the servers if nobody
    opens it while each is started, answers every request of the load, and is stopped. That a file is a document, or
    that the build did not need it, is no proof.
    """
    variants = plan.suite.variants
    folders = [built.checkouts[variant.slug] for variant in variants if variant.slug in built.checkouts]
    if len(variants) != 2 or len(folders) != 2 or plan.suite.builds > 1 or not _start_alike(*variants):
        return None
    found = differences(*folders)
    if found is None or any(_is_started(variant, found) for variant in variants):
        return None
    same = SameBuilds(
        servers=(variants[0].slug, variants[1].slug),
        files=found.files,
        unopened=len(found.differing),
        named=found.differing[:_NAMED],
    )
    if not found.differing:
        return same
    try:
        return None if _opens_any(found, folders, variants, [*plan.cells.values()], tools) else same
    except (OSError, LaunchError, DriveError):  # the measurement says what is wrong
        return None


def _start_alike(first: Variant, second: Variant) -> bool:
    """Whether all but the revision is the same: the command, its environment, what is done around it."""
    texts = []
    for variant in (first, second):
        known = variant.model_dump(mode="json")
        known["entry"].pop("name")
        known["entry"]["checkout"].pop("revision")
        texts.append(known)
    return texts[0] == texts[1]


def _is_started(variant: Variant, found: Differences) -> bool:
    """Whether the command names a file that differs, so that no start is needed to see it."""
    checkout, differing = variant.catalogued.checkout, set(found.differing)
    below = checkout.below if checkout is not None else ""
    return any(os.path.normpath(Path(below) / word) in differing for word in variant.catalogued.start.command)


def _opens_any(
    found: Differences, folders: Iterable[Path], variants: Iterable[Variant], cells: Iterable[Cell], tools: Tools
) -> bool:
    """Whether anybody opens a file that differs, or lists a folder whose names do, while the servers run and answer.

    Raises OSError, LaunchError and DriveError.
    """
    roots, ways = tuple(folders), tuple(cells)
    files = [root / name for root in roots for name in found.differing if (root / name).parent.is_dir()]
    if any(os.lstat(file).st_nlink > 1 for file in files if file.is_file()):
        return True  # it has another name, by which it may be opened
    listings = [root / name for root in roots for name in found.listings]
    with OpenedFiles(files, listings) as opened, tempfile.TemporaryDirectory() as logs:
        for variant in reversed(tuple(variants)):
            with tools.launcher.running(
                Launch(variant, tools.placement, Path(logs, "server.log"), log_is_kept=False)
            ) as server:
                own = (cell for cell in ways if cell.variant.slug == variant.slug)
                wrong = any(tools.driver.verify(cell, server.endpoint) is not None for cell in own)
                if wrong or server.death() is not None:
                    return True
            if opened.seen():
                return True
    return False
