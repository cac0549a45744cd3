"""The JDKs of this machine, and which of them serves."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from redline.plugins.jdks.homes import Jdk, read_home

ROOTS = ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java*", "/opt/java*/*", "~/.sdkman/candidates/java/*", "~/.jdks/*")


def on_path() -> Jdk | None:
    """The JDK of the `java` on the PATH, or None without one, or when that is a script that is in no JDK's home."""
    found = shutil.which("java")
    return read_home(Path(found).resolve().parent.parent) if found else None


def installed(roots: Iterable[str] = ROOTS) -> tuple[Jdk, ...]:
    """The JDKs of this machine, each once: JAVA_HOME's, those in the usual places, and that of the PATH."""
    told = os.environ.get("JAVA_HOME")
    homes = [Path(told)] if told else []
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
