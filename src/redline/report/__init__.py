"""Reports as sections: the tables, figures, sentences and findings of a run, a search and a history."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.report.histogram import histogram_section
    from redline.report.load import load_section, spectrum_section
else:
    __getattr__ = offered(__name__)
