"""Requests from the files that people have: targets, access logs, recordings, API descriptions, commands of curl. Pure.

A reader turns a file into requests, and names what it leaves out; `formats.py` lists the readers. Nothing of a file is
executed or fetched, and no file outside of its folder is read.
"""

from redline.suite.importing.formats import FORMATS, Format, detect, named, read_requests
from redline.suite.importing.gathering import ImportNote, Made, Wanted
from redline.suite.importing.source import RequestSource
