"""The workflows in the guide: they parse, are pinned, and give forks no write permissions."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.e2e.test_documented_commands import commands

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "ab-in-ci.md").read_text()
TEXTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMPARE, COMMENT = (YAML(typ="safe", pure=True).load(text) for text in TEXTS)


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_what_runs_code_of_a_fork_can_only_read() -> None:
    assert list(COMPARE["on"]) == ["pull_request"]
    assert COMPARE["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in COMPARE["jobs"].values())
    assert "secrets." not in TEXTS[0]
    assert "token" not in TEXTS[0]


def test_what_may_write_runs_nothing_of_a_fork() -> None:
    assert COMMENT["on"] == {"workflow_run": {"workflows": [COMPARE["name"]], "types": ["completed"]}}
    assert COMMENT["permissions"] == {}
    assert COMMENT["jobs"]["comment"]["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not any("uses" in step for step in steps(COMMENT))
    for step in steps(COMPARE) + steps(COMMENT):
        assert "${{" not in step.get("run", ""), "what an event says would become code of a shell"


def test_actions_are_pinned_to_commits_and_jobs_end() -> None:
    used = re.findall(r"uses: (\S+)(.*)", TEXTS[0])
    assert len(used) == 3
    for action, comment in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    assert all(job["timeout-minutes"] <= 30 for each in (COMPARE, COMMENT) for job in each["jobs"].values())


def test_the_artifact_has_one_name() -> None:
    (upload,) = [step["with"] for step in steps(COMPARE) if "upload-artifact" in step.get("uses", "")]
    script = steps(COMMENT)[0]["run"]
    assert f"--name {upload['name']} " in script
    assert f"test -s {upload['path']} " in script


def test_the_command_is_the_one_that_the_page_shows() -> None:
    ((*shown,),) = commands(PAGE)
    (run,) = [step["run"] for step in steps(COMPARE) if step.get("name") == "Compare"]
    assert f"redline {' '.join(shown)} > performance.md" in run


@pytest.mark.parametrize(
    "script", [step["run"] for each in (COMPARE, COMMENT) for step in steps(each) if "run" in step]
)
def test_scripts_are_those_of_a_shell(script: str) -> None:
    subprocess.run(["bash", "-n", "-c", script], check=True)
