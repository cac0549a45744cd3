"""Read the git repository that contains a folder, without side effects on it."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Import nothing of ours: the script also uses this module for completing words, without pydantic.
NAMES_A_REPOSITORY = (
    # The output of `git rev-parse --local-env-vars`, in any version of git.
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
    *("GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE"),
    "GIT_WORK_TREE",
    # Further variables that git gives to its hooks, or reads.
    *("GIT_ATTR_SOURCE", "GIT_INDEX_VERSION", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION"),
    *("GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS"),
)
"""Variables that select a repository, its index or a part of it, whatever folder a git command is started in."""
_WITHOUT_SIDE_EFFECTS = (
    "--no-optional-locks",  # `git status` would write the index
    *("-c", "core.hooksPath=/dev/null"),  # they are for people who commit and change branches
    *("-c", "core.fsmonitor=false"),  # it may be a hook, or leave a process behind
    *("-c", "core.splitIndex=false"),  # else an index elsewhere keeps its larger part in the repository
    *("-c", "gc.auto=0"),
)


def leave_the_callers_repository() -> None:
    """Remove these variables from the environment of this process, and so of all that it starts.

    Git sets them for its hooks, aliases and `rebase --exec`. With them, a build or a server that calls git in its own
    checkout would read and write the caller's index.
    """
    for name in NAMES_A_REPOSITORY:
        os.environ.pop(name, None)


@contextmanager
def outside_the_callers_repository() -> Iterator[None]:
    """Leave out these variables for a block: see `leave_the_callers_repository`."""
    kept = {name: os.environ.pop(name) for name in NAMES_A_REPOSITORY if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def git_command(folder: Path, *args: str) -> list[str]:
    """Return a command with options that leave the repository and its users' settings alone."""
    return ["git", "-C", str(folder), *_WITHOUT_SIDE_EFFECTS, *args]


def git(
    folder: Path, *args: str, env: Mapping[str, str] | None = None, within_s: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run git in its own session, which a Ctrl-C does not reach. Raises FileNotFoundError and TimeoutExpired."""
    return subprocess.run(
        git_command(folder, *args),
        env={**os.environ, "LC_ALL": "C", **(env or {})},  # messages are parsed, and shown among English words
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        start_new_session=True,
        timeout=within_s,
    )
