"""Import requests from existing files: targets, access logs, recordings, API descriptions, curl commands. Pure.

A reader turns a file into requests, and reports what it leaves out; `formats.py` lists the readers. Nothing in a file
is executed or fetched, and no file outside of its folder is read.
"""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.extras.importing.foreign import has_requests, name_foreign_list
    from redline.extras.importing.formats import FORMATS, Format, detect, kind_of, known_recording, named, read_requests
    from redline.suite.imported import Imported, ImportNote, Wanted
    from redline.suite.request_source import RequestSource
else:
    __getattr__ = offered(__name__)
