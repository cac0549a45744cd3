"""Import requests from existing files: targets, access logs, recordings, API descriptions, curl commands. Pure.

A reader turns a file into requests, and reports what it leaves out; `formats.py` lists the readers. Nothing in a file
is executed or fetched, and no file outside of its folder is read.
"""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.suite.importing.compose import is_compose_file
    from redline.suite.importing.foreign import Foreign, name_foreign_list
    from redline.suite.importing.formats import FORMATS, Format, detect, kind_of, known_recording, named, read_requests
    from redline.suite.importing.gathering import ImportNote, Made, Wanted
    from redline.suite.importing.procfile import is_procfile
    from redline.suite.importing.source import RequestSource
else:
    __getattr__ = offered(__name__)
