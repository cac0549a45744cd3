"""Import requests from existing files: targets, access logs, recordings, API descriptions, curl commands. Pure.

A reader turns a file into requests, and reports what it leaves out; `formats.py` lists the readers. Nothing in a file
is executed or fetched, and no file outside of its folder is read.
"""

from redline.suite.importing.formats import FORMATS, Format, detect, kind_of, known_recording, named, read_requests
from redline.suite.importing.gathering import ImportNote, Made, Wanted
from redline.suite.importing.source import RequestSource
