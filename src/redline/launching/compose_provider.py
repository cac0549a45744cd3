"""Programs that run compose files: docker compose, podman-compose, or the program behind `podman compose`."""

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from redline.launching.container_engine import (
    ANSWER_WITHIN_S,
    CHOICE,
    WORK_WITHIN_S,
    ContainerEngine,
    ContainerEngineError,
    output,
)


@dataclass(frozen=True)
class Provider:
    """A program that runs compose files with an engine. `words` begin its commands."""

    engine: ContainerEngine
    words: tuple[str, ...]
    name: str
    calls_client: bool = False

    @property
    def version(self) -> str:
        """`docker compose 2.40.3`. Raises ContainerEngineError."""
        said = output((*self.words, "version", "--short"), "version", ANSWER_WITHIN_S, name=self.name)
        return f"{self.name} {said.splitlines()[0].removeprefix('v') if said else ''}".strip()

    def command(self, folder: Path, *words: str) -> tuple[str, ...]:
        """Return a whole command. The engine's client gets its options on this machine from a script in the folder."""
        if not self.calls_client:
            return (*self.words, *words)
        client = self.engine.client
        if len(self.engine.command) > 1:
            script = folder / "client"
            if not script.exists():
                script.write_text(f'#!/bin/sh\nexec {shlex.join(self.engine.command)} "$@"\n')
                script.chmod(0o700)
            client = str(script)
        return (*self.words, "--podman-path", client, *words)

    def call(
        self,
        folder: Path,
        common: tuple[str, ...],
        *words: str,
        within_s: float = WORK_WITHIN_S,
    ) -> str:
        """Return the output of a command, named by the first of `words`. Raises ContainerEngineError."""
        command, file = self.command(folder, *common, *words), common[common.index("-f") + 1]
        # Files in the folder are gone when users read a message, and `down` would end the user's own project.
        tried = (*self.name.split(), "-f", file, "ps" if words[0] == "down" else words[0])
        return output(command, words[0], within_s, name=self.name, by_hand=shlex.join(tried))


def find_provider(engine: ContainerEngine) -> Provider:
    """Return the program that runs compose files with an engine. Raises ContainerEngineError if there is none."""
    of_client = f"{engine.name} compose"
    if engine.name == "podman" and (path := shutil.which("podman-compose")):
        return Provider(engine, (path,), "podman-compose", calls_client=True)
    try:
        engine.call("compose", "version")
    except ContainerEngineError as error:
        if engine.name == "docker" and (path := shutil.which("docker-compose")):
            return Provider(engine, (path,), "docker-compose")
        other = "docker" if engine.name == "podman" else "podman"
        hint = "install podman-compose" if engine.name == "podman" else "install the plugin docker-compose-plugin"
        if shutil.which(other):
            hint += f", or set {CHOICE}={other}"
        message = f"nothing here runs compose files with {engine.name}: {error}"
        raise ContainerEngineError(message, hint) from error
    return Provider(engine, (*engine.command, "compose"), of_client)
