"""The JSON that Redline itself prints, of any version: `results.json`, and `redline load --json`.

It is read by the names of its fields, not as this version's report, so that a later version may add fields.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from redline.extras.peers.outputs.reading import PeerOutput, member, number, reported, whole

_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


def knows(document: Mapping[str, Any]) -> bool:
    """Whether it is a report, or the result of a load."""
    return str(document.get("format")).startswith(("redline.report/", "redline.load/"))


def read(document: Mapping[str, Any]) -> Iterator[PeerOutput]:
    """Yield the cells of which anything is known: those of a report's servers, or the only cell of a load."""
    if str(document["format"]).startswith("redline.load/"):
        about = PeerOutput(url=str(document.get("url", "")), load=str(document.get("load", "")))
        made = _output(about, document, member(document, "throughput"), document.get("response"))
        if _says_what_is_known(document) and (made.rate_per_s is not None or made.latencies_ns):
            yield made
        return
    started = whole(member(document, "run").get("started_unix_ns"))
    cells = document.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict) and _says_what_is_known(cell) and cell.get("role") == "subject":
            about = PeerOutput(
                url=str(cell.get("slug", "")), load=str(cell.get("load_text", "")), started_unix_ns=started
            )
            throughput = member(member(cell, "estimates"), "throughput")
            made = _output(about, cell, throughput, cell.get("response_percentiles"))
            if made.rate_per_s is not None or made.latencies_ns:
                yield made


def _says_what_is_known(counted: Mapping[str, Any]) -> bool:
    """Whether the numbers that it has are known: an invalid result of an earlier version does not say which are."""
    trials = counted.get("trials")
    some = any(
        isinstance(t, dict) and (t.get("ended_early") is True or t.get("partly") is True)
        for t in (trials if isinstance(trials, list) else ())
    )
    return counted.get("valid") is True or bool(counted.get("bounds")) or some


def _output(about: PeerOutput, counted: Mapping[str, Any], throughput: Mapping[str, Any], points: object) -> PeerOutput:
    """Return the numbers of a cell, without bounds, from the points of its distribution, and what holds its counts."""
    times = {
        q: number(point.get("ns"))
        for point in (points if isinstance(points, list) else ())
        if isinstance(point, dict)
        and not point.get("bound")
        and (q := number(point.get("q"))) in _QUANTILES
        and q is not None
    }
    outcomes = member(member(counted, "counts"), "outcomes")
    counts = {name: whole(count) or 0 for name, count in outcomes.items()}
    right = counts.pop("ok", None)
    return replace(
        about,
        latencies_ns=reported(times),
        requests=right,
        rate_per_s=number(throughput.get("value")),
        failed=None if right is None else sum(counts.values()),
    )
