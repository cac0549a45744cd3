"""Revisions in the repository of a folder: what is a port, and no revision, is said to be one."""

from pathlib import Path

import pytest

from redline.asking.origins import FromRepository
from redline.asking.requests import check_targets_are_whole
from redline.errors import UsageError
from tests.unit.launching.test_revisions import git

PORT, NO_REPOSITORY = "18080 is a port without a host", "is not in a git repository"


@pytest.mark.parametrize(("name", "says"), [("18080", PORT), ("main", NO_REPOSITORY), ("1808012", NO_REPOSITORY)])
def test_a_port_outside_of_a_repository(tmp_path: Path, name: str, says: str) -> None:
    here = FromRepository(tmp_path)
    for asked in (here.checkout, here.ends, lambda named: here.leaves_out_changes((named, "main"))):
        with pytest.raises(UsageError, match=says):
            asked(name)


def test_a_revision_that_looks_like_a_port_is_one_where_git_knows_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(tmp_path, "tag", "2024")
    here = FromRepository(tmp_path)
    assert not here.leaves_out_changes(("2024",))
    with pytest.raises(UsageError, match="2025 is a port without a host"):
        here.checkout("2025")


def test_a_port_after_a_colon_is_never_a_revision() -> None:
    with pytest.raises(UsageError, match=":18080 is a port without a host"):
        check_targets_are_whole([":18080"])
