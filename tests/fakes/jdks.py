"""Homes of JDKs, as far as they are read, and variants that ask for a JDK."""

from pathlib import Path

from redline.model import Option, OptionValue, Variant
from tests.fakes.servers.entries import server

BARE = 'JAVA_VERSION="21.0.8"\nMODULES="java.base"\n'


def make_home(home: Path, release: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("#!/bin/sh\n")
    (home / "bin/java").chmod(0o755)
    (home / "release").write_text(release)
    return home


def asking(jdk: OptionValue) -> Variant:
    plain = server()
    option = Option(values=(17, 21, 25), default=21)
    entry = plain.entry.model_copy(update={"options": {"jdk": option}})
    return Variant(entry=entry, options={"jdk": jdk})
