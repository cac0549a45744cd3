"""Read reports from files: a `results.json` of any kind and origin, plain or gzip-compressed."""

import gzip
import zlib
from io import BytesIO
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from redline.errors import NotStoredError, StoreError
from redline.files import read_regular
from redline.model import Report
from redline.model.limits import AnyReport, LimitReport
from redline.storage.earlier import todays_limit_report

_MOST_BYTES = 1 << 30
"""The limit of a file, and of a decompressed file, which could be endless."""
_KINDS: dict[str, type[AnyReport]] = {"redline.report/1": Report, "redline.limit/1": LimitReport}
_EARLY_COMPARISON = "redline.ab"
_BEGINNINGS = (b"{", b"[")
_HINT = "name the results.json of a run, a comparison, a search or a load, as it is or as results.json.gz"


class NotJsonError(NotStoredError):
    """A file holds a text that is no JSON, not even broken JSON."""


def read_report(file: Path) -> AnyReport:
    """Read a report from a file.

    Raises StoreError if it cannot be opened, NotJsonError if it holds another text, and NotStoredError if it holds no
    report.
    """
    try:
        content = _plain(file)
    except OSError as error:
        hint = "see whether it is there, who may read it, and the disk"
        raise StoreError(f"{file} cannot be read: {error.strerror or error}", hint=hint) from error
    try:
        stamp = from_json(content)
    except ValueError as error:
        what = f": {error}" if content.strip() else ", but empty"
        kind = NotStoredError if content.lstrip()[:1] in _BEGINNINGS else NotJsonError
        raise kind(f"{file} is not JSON{what}", hint=_HINT) from None
    stamped = stamp.get("format") if isinstance(stamp, dict) else None
    model = _KINDS.get(stamped) if isinstance(stamped, str) else None
    if isinstance(stamped, str) and stamped.startswith(_EARLY_COMPARISON):
        raise NotStoredError(
            f"{file} is of a comparison by a version before 0.1.0, which had a format of its own",
            hint=f"see its answer in {file.with_name('results.md')}, or compare anew: redline ab A B -o DIR",
        )
    if model is None:
        said = f"has the format {stamped}" if isinstance(stamped, str) else "is JSON without a format"
        raise NotStoredError(f"{file} {said}, and holds no report", hint=_HINT)
    if model is LimitReport:
        content = to_json(todays_limit_report(stamp))
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the report"
        hint = "it is damaged or of a later version; `redline report DIR` makes it again from its recordings"
        raise NotStoredError(f"{file}: {where}: {first['msg']}", hint=hint) from None


def _plain(file: Path) -> bytes:
    """The content of a file, decompressed if it begins like gzip."""
    content = read_regular(file, _MOST_BYTES)
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.open(BytesIO(content)) as packed:
            content = packed.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NotStoredError(f"{file} is damaged: {error}", hint="copy it again") from None
    if len(content) > _MOST_BYTES:
        raise NotStoredError(f"{file} has more than 1 GiB when it is decompressed", hint=_HINT)
    return content
