"""JDKs of this machine, by their homes and `release` files. Nothing is started."""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r'^([A-Z_]+)="?(.*?)"?\s*$')
# JEP 223, JEP 322: $VNUM(-$PRE)?(+$BUILD)?(-$OPT)?
_VERSION = re.compile(r"(?P<numbers>\d+(?:[._]\d+)*)(?:-(?P<pre>[A-Za-z0-9]+))?(?:\+(?P<build>\d+))?")
_PLAIN_VENDORS = {"Eclipse Adoptium": "Temurin", "Eclipse Foundation": "Temurin", "Oracle Corporation": "Oracle"}
ROOTS = ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java*", "/opt/java*/*", "~/.sdkman/candidates/java/*", "~/.jdks/*")


@dataclass(frozen=True)
class Jdk:
    """A Java runtime that can be started. `numbers` orders updates: (21, 0, 8) and last the build, 9."""

    home: Path
    feature: int
    numbers: tuple[int, ...]
    ga: bool
    name: str

    @property
    def java(self) -> Path:
        """Its `java`."""
        return self.home / "bin/java"


def read_home(home: Path) -> Jdk | None:
    """The JDK whose home this is, or None for a folder without `java` or without a version in its `release` file."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if not os.access(home / "bin/java", os.X_OK):
        return None
    release = {found[1]: found[2] for line in text.splitlines() if (found := _LINE.match(line))}
    version = release.get("SEMANTIC_VERSION") or release.get("JAVA_RUNTIME_VERSION") or release.get("JAVA_VERSION", "")
    parts = _VERSION.match(version)
    if parts is None:
        return None
    numbers = tuple(int(number) for number in re.split(r"[._]", parts["numbers"]))
    numbers = numbers[1:] if numbers[0] == 1 and len(numbers) > 1 else numbers  # 1.8.0_452 is release 8
    early = numbers[0] > 8 and (parts["pre"] is not None or "-" in release.get("JAVA_VERSION", ""))
    return Jdk(
        home=home,
        feature=numbers[0],
        numbers=(*numbers, int(parts["build"] or 0)),
        ga=not early,
        name=f"{_vendor(release)} {version.removesuffix('-LTS')}",
    )


def _vendor(release: dict[str, str]) -> str:
    vendor = release.get("IMPLEMENTOR", "").strip()
    vendor = _PLAIN_VENDORS.get(vendor, vendor) or "JDK"
    return f"{vendor} GraalVM" if "GRAALVM_VERSION" in release and "graal" not in vendor.lower() else vendor


def on_path() -> Jdk | None:
    """The JDK of the `java` on the PATH, or None without one, or when that is a script that is in no JDK's home."""
    found = shutil.which("java")
    return read_home(Path(found).resolve().parent.parent) if found else None


def installed(roots: Iterable[str] = ROOTS) -> tuple[Jdk, ...]:
    """The JDKs of this machine, each once: JAVA_HOME's, those in the usual places, and that of the PATH."""
    named = os.environ.get("JAVA_HOME")
    homes = [Path(named)] if named else []
    for root in roots:
        whole = Path(os.path.expanduser(root))  # noqa: PTH111 - Path's raises for a user without a home
        if whole.parts[0].startswith("~"):
            continue
        # A pattern has stars in its last parts only.
        fixed = Path(*[part for part in whole.parts if "*" not in part])
        homes += sorted(fixed.glob(str(whole.relative_to(fixed))))
    jdks = [read_home(home.resolve()) for home in homes]
    return tuple(dict.fromkeys(jdk for jdk in (*jdks, on_path()) if jdk is not None))


def best(jdks: Iterable[Jdk], feature: int) -> Jdk | None:
    """Of those with that feature release: a released build before an early one, then the newest, then the first."""
    fitting = [jdk for jdk in jdks if jdk.feature == feature]
    return max(fitting, key=lambda jdk: (jdk.ga, _comparable(jdk)), default=None)


def _comparable(jdk: Jdk) -> tuple[tuple[int, ...], int]:
    """The update before the build: 17.0.9 of build 9 is older than 17.0.10 of build 1, and 17 older than 17.0.1."""
    *update, build = jdk.numbers
    return tuple(update), build
