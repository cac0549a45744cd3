"""The commands as functions of Python: what `from redline import …` gives."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.api.amounts import Amount
    from redline.api.calls import ab, limit, load, read_requests, run
    from redline.api.results import MeasurementInterrupted, RunResult, SearchResult
    from redline.api.serving import serve
    from redline.api.suites import WrittenSuite as Suite
else:
    __getattr__ = offered(__name__)
