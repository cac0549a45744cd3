"""What a session is and where it came from, as its directory says."""

import time
from collections.abc import Mapping
from dataclasses import field

from redline.lazily import dataclass
from redline.model import Manifest, Plan
from redline.model.run import Kind
from redline.model.search import SearchTerms
from redline.running.assembly import Workbench


@dataclass(frozen=True)
class Source:
    """The origin of a session: the command line, the suite's file and text (empty for a URL), and its product.

    `kept` are the files that the suite's text names beside itself, which are kept with it, by name.
    """

    command: str
    file: str = ""
    text: str = ""
    kind: Kind = "run"
    kept: Mapping[str, str | bytes] = field(default_factory=dict)


def new_manifest(
    name: str, source: Source, plan: Plan, bench: Workbench, search: SearchTerms | None = None
) -> Manifest:
    """Return the manifest of a session that begins now; `search` is what a search asks."""
    return Manifest(
        kind=source.kind if search is None else "search",
        name=name,
        created_unix_ns=time.time_ns(),
        command=source.command,
        suite_file=source.file,
        suite_text=source.text,
        plan=plan,
        environment=bench.environment,
        hosts=bench.hosts,
        search=search,
    )
