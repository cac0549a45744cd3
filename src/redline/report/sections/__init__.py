"""Reports as sections: the tables, sentences and findings of a run, a search and a history."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.report.sections.by_request import outcomes_table, request_tables
    from redline.report.sections.streams import streams_text
else:
    __getattr__ = offered(__name__)
