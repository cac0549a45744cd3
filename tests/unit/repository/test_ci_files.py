"""The action, the template and the workflows of the guide: valid, pinned, and without rights where forks run."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner
from ruamel.yaml import YAML

from redline.cli.command_line import AbFlags
from tests.e2e.test_documented_commands import commands

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "ab-in-ci.md").read_text()
COMPARE_TEXT, COMMENT_TEXT, GITLAB_TEXT, HISTORY_TEXT = re.findall(
    r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL
)
ACTION_TEXT, POSTS_TEXT = ((ROOT / name).read_text() for name in ("action.yml", "ci/comment/action.yml"))
TEMPLATE_TEXT = (ROOT / "ci" / "redline.gitlab-ci.yml").read_text()
SCRIPTS = [ROOT / "ci" / name for name in ("install", "compare", "history", "post-comment")]


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


COMPARE, COMMENT, ACTION, POSTS, HISTORY = map(
    parsed, (COMPARE_TEXT, COMMENT_TEXT, ACTION_TEXT, POSTS_TEXT, HISTORY_TEXT)
)


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("vendor.github-workflows", COMPARE_TEXT),
        ("vendor.github-workflows", COMMENT_TEXT),
        ("vendor.github-workflows", HISTORY_TEXT),
        ("vendor.github-actions", ACTION_TEXT),
        ("vendor.github-actions", POSTS_TEXT),
        ("vendor.gitlab-ci", GITLAB_TEXT),
        ("vendor.gitlab-ci", TEMPLATE_TEXT),
    ],
    ids=["compare", "comment", "history", "action", "its comment", "gitlab in the guide", "template"],
)
def test_it_is_what_the_published_schemas_allow(schema: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "file.yml").write_text(text)
    done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, str(tmp_path / "file.yml")])
    assert done.exit_code == 0, done.output
    (tmp_path / "file.yml").write_text("[]")
    assert CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, str(tmp_path / "file.yml")]).exit_code == 1


def test_what_runs_code_of_a_fork_can_only_read() -> None:
    assert COMPARE["on"] == "pull_request"
    assert COMPARE["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in COMPARE["jobs"].values())
    assert steps(COMPARE)[0]["with"]["persist-credentials"] is False
    for text in (COMPARE_TEXT, ACTION_TEXT):
        assert "secrets." not in text
        assert "token" not in text


def test_what_may_write_runs_nothing_of_a_fork() -> None:
    assert COMMENT["on"] == {"workflow_run": {"workflows": [COMPARE["name"]], "types": ["completed"]}}
    assert COMMENT["permissions"] == {}
    (job,) = COMMENT["jobs"].values()
    assert job["permissions"] == {"actions": "read", "contents": "read", "pull-requests": "write"}
    checkout, comment = steps(COMMENT)
    assert checkout["with"] == {"persist-credentials": False}  # and no `ref`: the main branch
    assert comment == {"uses": "./.redline/ci/comment"}
    assert not any("uses" in step for step in POSTS["runs"]["steps"])


def test_what_pushes_runs_for_the_main_branch_alone() -> None:
    assert HISTORY["on"] == {"push": {"branches": ["main"]}}
    assert HISTORY["permissions"] == {"contents": "write"}
    assert set(steps(HISTORY)[1]["with"]) <= set(ACTION["inputs"])
    (rule,) = parsed(TEMPLATE_TEXT)["redline-history"]["rules"]
    assert "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule["if"]


def test_nothing_that_an_event_says_becomes_code_of_a_shell() -> None:
    for step in (*ACTION["runs"]["steps"], *POSTS["runs"]["steps"], *steps(COMPARE), *steps(COMMENT), *steps(HISTORY)):
        assert "${{" not in step.get("run", "")


def test_actions_are_pinned_to_commits_and_jobs_end() -> None:
    used = re.findall(r"uses: (\S+)(.*)", COMPARE_TEXT + COMMENT_TEXT + HISTORY_TEXT + ACTION_TEXT)
    others = [(action, comment) for action, comment in used if not action.startswith("./.redline")]
    assert len(others) == 4
    for action, comment in others:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    assert all(job["timeout-minutes"] <= 30 for each in (COMPARE, COMMENT, HISTORY) for job in each["jobs"].values())


def test_the_folder_has_what_the_workflows_use(tmp_path: Path) -> None:
    """The commands that fill it copy these."""
    assert "cp -r action.yml ci ~/shop/.redline\n" in PAGE
    for name in ("action.yml", "ci"):
        shutil.copytree(ROOT / name, tmp_path / name) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, tmp_path)
    for used in ("./.redline", "./.redline/ci/comment"):
        assert (tmp_path / used.removeprefix("./.redline").lstrip("/") / "action.yml").is_file()
    include = parsed(GITLAB_TEXT)["include"]["local"]
    assert (tmp_path / include.removeprefix(".redline/")).is_file()
    for called in re.findall(
        r"bash \S+(?:PATH|\.redline)/(ci/\w+|\.\./[\w-]+)", ACTION_TEXT + TEMPLATE_TEXT + POSTS_TEXT
    ):
        assert (tmp_path / called.replace("..", "ci")).is_file()


def test_inputs_reach_the_scripts_under_the_names_that_they_read() -> None:
    given = {name for step in ACTION["runs"]["steps"] for name in step.get("env", {}) if name.startswith("REDLINE")}
    read = {name for script in SCRIPTS for name in re.findall(r"\$\{(REDLINE\w*)", script.read_text())}
    assert given == read
    assert set(re.findall(r"\$\{\{ inputs\.([a-z-]+) \}\}", ACTION_TEXT)) == set(ACTION["inputs"])
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE.partition("## Inputs")[2], flags=re.MULTILINE)
    assert listed == list(ACTION["inputs"])
    assert {f"`{name}`" for name in read - {"REDLINE"}} <= set(re.findall(r"`REDLINE\w+`", PAGE))


def test_nothing_that_is_not_decided_fails_by_default() -> None:
    assert ACTION["inputs"]["fail-on"]["default"] == ""
    assert ACTION["inputs"]["threshold"]["default"] == "2%"


def test_the_artifact_has_one_name_and_outlives_a_failure() -> None:
    _, compare, history, upload, last = ACTION["runs"]["steps"]
    script = (ROOT / "ci" / "post-comment").read_text()
    assert upload["with"]["name"] == compare["env"]["NAME"] == POSTS["runs"]["steps"][0]["env"]["NAME"]
    assert ACTION["inputs"]["name"]["default"] == POSTS["inputs"]["name"]["default"] == "redline"
    assert '--name "$NAME" ' in script
    assert all("|| code=$?" in step["run"] for step in (compare, history))
    assert last["run"] == 'if [ "$CODE" != 0 ]; then exit "$CODE"; else exit "${HISTORY:-0}"; fi'


def test_the_command_is_the_one_that_the_page_shows() -> None:
    shown = commands(PAGE)[0]
    assert shown == ["ab", "HEAD^..HEAD", "--for", "2m", "--fail-on", "slower", "--format", "md"]
    compare = (ROOT / "ci" / "compare").read_text()
    flags = {flag.param_decls[0] for flag in AbFlags.declared().values() if flag.param_decls}
    assert set(re.findall(r"(--(?:for|threshold|requests|fail-on|git|format))\b", compare)) <= flags
    assert steps(COMPARE)[1]["with"] == {"for": "2m", "fail-on": "slower"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_those_of_a_shell(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert script.stat().st_mode & 0o111


def test_the_page_has_no_placeholder() -> None:
    assert "OWNER" not in PAGE
    assert "0" * 8 not in PAGE
