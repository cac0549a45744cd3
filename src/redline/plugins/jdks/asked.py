"""The JDK that a variant asks for with its option `jdk`."""

from collections.abc import Callable
from pathlib import Path

from redline.errors import BuildError
from redline.model import OptionValue, Variant
from redline.model.placeholders import JDK, ON_PATH
from redline.plugins.jdks.homes import Jdk, read_home
from redline.plugins.jdks.provisioning import by_hand, provision
from redline.plugins.jdks.searching import best, installed, on_path


class Jdks:
    """The JDKs that variants ask for; what one asks for is looked for once, so that a run keeps to what it began with.

    Of the machine's and those in the lab's cache the newest of a release is taken; of equal ones the machine's.
    """

    def __init__(
        self,
        cache: Path,
        machine: Callable[[], tuple[Jdk, ...]] = installed,
        fetch: Callable[[int, Path, Callable[[str], None]], Jdk] = provision,
    ) -> None:
        self._folder = cache.absolute() / "jdks"
        self._machine = machine
        self._fetch = fetch
        self._known: dict[OptionValue, Jdk] = {}
        self._failed: dict[OptionValue, BuildError] = {}

    def provide(self, variant: Variant, progress: Callable[[str], None]) -> Jdk | None:
        """The JDK of a variant, fetched if there is none; None for one without the option. Raises BuildError.

        What failed once fails for all the variants that ask for it, without waiting for a network again.
        """
        asked = variant.options.get(JDK, "")
        if asked in self._failed:
            raise self._failed[asked]
        try:
            found = self._for(variant, lambda feature: self._fetch(feature, self._folder, progress))
        except BuildError as error:
            self._failed[asked] = error
            raise
        return _fitting(variant, found)

    def find(self, variant: Variant) -> Jdk | None:
        """The JDK of a variant, which has to be there; None for one without the option. Raises BuildError."""

        def missing(feature: int) -> Jdk:
            raise BuildError(f"there is no JDK {feature} on this machine", hint=f"build first; or {by_hand(feature)}")

        return _fitting(variant, self._for(variant, missing))

    def _for(self, variant: Variant, otherwise: Callable[[int], Jdk]) -> Jdk | None:
        asked = variant.options.get(JDK)
        if asked is None:
            return None
        if asked not in self._known:
            self._known[asked] = self._look(asked) or otherwise(int(asked))
        return self._known[asked]

    def _look(self, asked: OptionValue) -> Jdk | None:
        """What is here; None for a release that is not. Raises BuildError where nothing could be fetched either."""
        if asked == ON_PATH:
            return _there(on_path(), "the `java` on the PATH", "put a JDK's `bin` on the PATH, or name a release")
        if isinstance(asked, str):
            return _there(read_home(Path(asked)), asked, "name a JDK's home: the folder with `bin/java` and `release`")
        cached = (read_home(home) for home in sorted(self._folder.glob("temurin-*")))
        return best((*self._machine(), *(jdk for jdk in cached if jdk)), int(asked))


def _there(jdk: Jdk | None, what: str, hint: str) -> Jdk:
    if jdk is None:
        raise BuildError(f"{what} is not of a JDK whose `release` file tells its version", hint=hint)
    return jdk


def _fitting(variant: Variant, jdk: Jdk | None) -> Jdk | None:
    """The same, when its release is one that the server runs on: `path` and a home may be of any. Raises BuildError."""
    releases = variant.entry.releases
    if jdk is None or not releases or jdk.feature in releases:
        return jdk
    known = " or ".join(map(str, releases))
    raise BuildError(
        variant.entry.refusal(JDK, jdk.feature),
        hint=f"{jdk.home} is {jdk.name}: ask for {known}, or name the home of such a JDK",
    )


def told_version(variant: Variant, jdk: Jdk) -> str:
    """For the recording: `Temurin 21.0.8+9 (jdk 21)`."""
    return f"{jdk.name} (jdk {variant.options[JDK]})"
