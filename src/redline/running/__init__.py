"""Execute plans and searches: trials, probes, sessions, and the tools that they run with."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.running.cell_search import SearchListener
    from redline.running.executors import LocalExecutor
    from redline.running.searching import SearchSession, not_of_searches, resume
    from redline.running.session import stored_suite
    from redline.running.views import run_report, write_run_views
else:
    __getattr__ = offered(__name__)
