"""What CI runs: `ci/compare` on clones of a bare remote, `ci/post-comment` with a `gh` that records its calls."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from tests.e2e.conftest import CHECKOUT, REDLINE, Done
from tests.e2e.test_ab_git import Project
from tests.fakes.histories import comparison
from tests.fakes.stored import kept

pytestmark = pytest.mark.e2e

CI = CHECKOUT / "ci"
FLAGS = {"REDLINE_FOR": "4s", "REDLINE_FLAGS": "--load closed:4 --metric p50"}
GH = """\
#!/usr/bin/env bash
# A `gh` that knows one run and one pull request. What it answers passes the real filter of --jq.
printf '%s\\n' "$*" >>"$FAKE/calls"
case "$1 $2" in
  "run download") mkdir -p "$7"; [ ! -e "$FAKE/comment.md" ] || cp "$FAKE/comment.md" "$7"; exit ;;
esac
while [ "$#" -gt 0 ]; do
  case $1 in
    --jq) filter=$2 ;;
    repos/*) path=$1 ;;
    body=@*) cp "${1#body=@}" "$FAKE/body" ;;
  esac
  shift
done
case $path in
  */pulls) cat "$FAKE/pulls" ;;
  */comments) [ -z "${filter:-}" ] && exit; cat "$FAKE/comments" ;;
  *) exit ;;
esac | jq -r "$filter"
"""


def bash(script: str, *args: str | Path, folder: Path, **variables: str) -> Done:
    """Run a script of `ci/` as CI servers do, with a given `redline`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "REDLINE"))}
    command = ["bash", str(CI / script), *map(str, args)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "REDLINE": str(REDLINE), "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, oracle: Path) -> Path:
    """A bare repository: `main` is v1, `change` merges v2 into it, `broken` does not build."""
    folder = tmp_path_factory.mktemp("bare")
    project = Project(folder / "project", oracle)
    project.git("checkout", "--quiet", "-B", "main", "v1")
    project.git("checkout", "--quiet", "-B", "change", "v2")
    bare = folder / "remote.git"
    project.git("clone", "--quiet", "--bare", str(project.folder), str(bare))
    return bare


@pytest.fixture
def remote(tmp_path: Path, bare: Path) -> Path:
    """A copy of the repository."""
    return shutil.copytree(bare, tmp_path / "remote.git")


def cloned(remote: Path, branch: str, *flags: str) -> Path:
    folder = remote.parent / "clone"
    command = ["git", "clone", "--quiet", "--branch", branch, *flags, f"file://{remote}", str(folder)]
    subprocess.run(command, check=True)
    return folder


@pytest.mark.long
def test_a_slower_change_fails_and_every_file_says_so(remote: Path, tmp_path: Path) -> None:
    clone, results, summary = cloned(remote, "change", "--depth", "2"), tmp_path / "results", tmp_path / "summary"
    done = bash(
        "compare",
        results,
        folder=clone,
        REDLINE_FAIL_ON="slower",
        GITHUB_ACTIONS="true",
        GITHUB_BASE_REF="main",
        GITHUB_STEP_SUMMARY=str(summary),
        **FLAGS,
    )
    assert done.code == 3, done.err
    comment = (results / "comment.md").read_text()
    assert comment.startswith("**slower: ")
    assert comment.splitlines()[0].endswith(" (p50, this pull request over main)")
    assert comment.index("### The answer, in words\n\n- this pull request **has ") < comment.index("### Comparisons")
    assert "main over main" in comment
    assert not re.search(r"\b[AB]\b", comment)
    assert summary.read_text() == comment
    assert "::warning title=this pull request over main%2C " in done.out
    (suite,) = ET.parse(results / "junit.xml").getroot()
    assert suite.get("failures") == "1"
    ratios = [name for name in json.loads((results / "bmf.json").read_text()) if name.endswith(" over main")]
    assert len(ratios) == 1
    assert any(
        entry["name"] == f"{ratios[0]} p50-ratio" for entry in json.loads((results / "benchmark.json").read_text())
    )
    assert (results / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"GITHUB_BASE_REF": "main"}, "main,this pull request"),
        ({"GITHUB_BASE_REF": "release/1.2"}, "release-1.2,this pull request"),
        ({"GITHUB_BASE_REF": "fix#12,x"}, "fix-12-x,this pull request"),
        ({"GITHUB_BASE_REF": "\u00e9"}, "base,this pull request"),
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "release@2"}, "release-2,this merge request"),
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}, "main,this merge request"),
        ({"REDLINE_NAMES": "v1,next", "GITHUB_BASE_REF": "main"}, "v1,next"),
        ({"GITHUB_BASE_REF": ""}, None),
        ({"GITHUB_BASE_REF": "main", "REDLINE_BASE": "HEAD~1"}, None),
        ({"GITHUB_BASE_REF": "main", "REDLINE_HISTORY": "kept"}, None),
    ],
)
def test_base_and_head_are_called_what_the_pull_request_calls_them(
    remote: Path, tmp_path: Path, variables: dict[str, str], names: str | None
) -> None:
    """Another base has its own name, and what is kept over time goes on under the names that it has."""
    fake = tmp_path / "redline"
    fake.write_text(FAKE_REDLINE)
    fake.chmod(0o755)
    clone, calls = cloned(remote, "change"), {"RUNNER_TEMP": str(tmp_path), "REDLINE": str(fake)}
    bash("compare", tmp_path / "results", folder=clone, **calls, **variables)
    first = (tmp_path / "calls").read_text().splitlines()[0]
    assert (f" --names {names} " in first) if names else ("--names" not in first)


@pytest.mark.long
def test_a_branch_that_a_shallow_clone_lacks_is_fetched(remote: Path, tmp_path: Path) -> None:
    clone = cloned(remote, "change", "--depth", "1")
    done = bash("compare", tmp_path / "results", folder=clone, REDLINE_BASE="main", **FLAGS)
    assert done.code == 0, done.err  # without REDLINE_FAIL_ON no verdict fails it
    assert "the p50 of A" in (tmp_path / "results" / "comment.md").read_text()
    assert "::" not in done.out


def test_a_parent_that_a_shallow_clone_lacks_is_fetched(remote: Path, tmp_path: Path) -> None:
    clone = cloned(remote, "change", "--depth", "1")
    (clone / "redline.yaml").unlink()
    done = bash("compare", tmp_path / "results", folder=clone)
    assert done.code == 2  # `ab` has both commits, and asks for the file
    assert "there is no redline.yaml" in done.err


def test_what_nobody_has_is_one_message(remote: Path, tmp_path: Path) -> None:
    clone = cloned(remote, "change", "--depth", "1")
    for base in ("nothing", "--upload-pack=touch pwned"):
        done = bash("compare", tmp_path / "results", folder=clone, REDLINE_BASE=base)
        assert done.code == 2
        assert "redline: " in done.err
        assert "hint: " in done.err
    assert not (clone / "pwned").exists()


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("REDLINE_FOLDER", "nope", "there is no folder nope"),
        ("REDLINE_BASE", "nope", "this clone has no nope,"),
        ("REDLINE_HEAD", "HEAD~9", "this clone has no HEAD~9,"),
        ("REDLINE", "no-such-redline", "there is no no-such-redline"),
    ],
)
def test_an_input_that_is_wrong_is_in_comment_and_summary(
    remote: Path, tmp_path: Path, variable: str, value: str, says: str
) -> None:
    clone, results, summary = cloned(remote, "change"), tmp_path / "results", tmp_path / "summary"
    done = bash("compare", results, folder=clone, GITHUB_STEP_SUMMARY=str(summary), **{variable: value})
    assert done.code == 2, done.err
    comment = (results / "comment.md").read_text()
    assert comment.startswith(f"## Nothing was compared\n\n`ci/compare` ended with 2:\n\n    redline: {says}")
    assert "\n      hint: " in comment
    assert summary.read_text() == comment


@pytest.mark.parametrize(
    ("log", "first", "last"),
    [
        ("seq 9; echo redline: broken; seq 100000", "redline: broken", "39"),
        ("seq 100000", "99961", "100000"),
    ],
)
def test_a_long_log_is_cut_and_keeps_the_exit_code(
    remote: Path, tmp_path: Path, log: str, first: str, last: str
) -> None:
    clone, fake = cloned(remote, "change"), tmp_path / "redline"
    fake.write_text(f"#!/bin/sh\n({log}) >&2\nexit 1\n")
    fake.chmod(0o755)
    done = bash("compare", tmp_path / "results", folder=clone, REDLINE=str(fake))
    assert done.code == 1
    lines = (tmp_path / "results" / "comment.md").read_text().splitlines()
    assert (lines[4], lines[-1], len(lines)) == (f"    {first}", f"    {last}", 44)


def test_a_build_that_fails_is_in_the_comment(remote: Path, tmp_path: Path) -> None:
    clone = cloned(remote, "change")
    done = bash("compare", tmp_path / "results", folder=clone, REDLINE_HEAD="broken", GITHUB_ACTIONS="true")
    assert done.code == 1, done.err
    comment = (tmp_path / "results" / "comment.md").read_text()
    assert comment.startswith("## Nothing was compared\n\n`redline ab` ended with 1:\n\n    redline: broken (")
    assert not (tmp_path / "results" / "junit.xml").exists()


def push(remote: Path, folder: Path, results: Path, **variables: str) -> Done:
    """Keep a stored comparison as a job of CI does, on a fresh clone of the remote."""
    shutil.rmtree(remote.parent / "clone", ignore_errors=True)
    clone = cloned(remote, "change", "--depth", "1")
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    shutil.copytree(folder, results / "run")
    return bash("history", results, folder=clone, **{"REDLINE_HISTORY": "kept", **variables})


def kept_on(remote: Path) -> list[str]:
    """The files of the branch."""
    command = ["git", "-C", str(remote), "ls-tree", "-r", "--name-only", "kept"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def add_to_branch(remote: Path, *folders: Path) -> None:
    """Put runs beside those of the branch, as so many jobs before would have."""
    shutil.rmtree(remote.parent / "clone")
    clone = cloned(remote, "kept")
    for folder in folders:
        shutil.copytree(folder, clone / "runs" / f"earlier-{folder.name}")
    for words in (("add", "--all"), ("commit", "--quiet", "--amend", "--no-edit"), ("push", "--quiet", "--force")):
        named = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
        subprocess.run(["git", *named, *words], cwd=clone, check=True)


@pytest.mark.long
def test_a_branch_keeps_the_runs_and_a_page_marks_a_change(remote: Path, tmp_path: Path) -> None:
    results, summary, stored = tmp_path / "results", tmp_path / "summary", tmp_path / "stored"
    for place in range(6):
        kept(stored / str(place), comparison(place, 1.0 if place < 3 else 1.2))
    assert push(remote, stored / "0", results).code == 0
    add_to_branch(remote, *(stored / str(place) for place in range(1, 5)))
    done = push(remote, stored / "5", results, GITHUB_STEP_SUMMARY=str(summary))
    assert done.code == 0, done.err
    runs = {file.split("/")[1] for file in kept_on(remote) if file.startswith("runs/")}
    assert len(runs) == 6
    assert "index.html" in kept_on(remote)
    commits = subprocess.run(["git", "-C", str(remote), "rev-list", "--count", "kept"], check=True, capture_output=True)
    assert commits.stdout == b"1\n"
    page = (results / "history.html").read_text()
    assert page.count('class="change slower"') == 2  # CPU per request and throughput of B over A
    assert "slower" in (results / "history.md").read_text()
    assert "## History" in summary.read_text()
    assert not list((remote.parent / "clone").glob("runs"))
    failing = push(remote, stored / "5", results, REDLINE_FAIL_ON="slower, inconclusive regression", REDLINE_KEEP="5")
    assert failing.code == 3, failing.err
    assert "regression: B.home.load against A: " in failing.err
    assert len({file.split("/")[1] for file in kept_on(remote) if file.startswith("runs/")}) == 5


def test_a_branch_of_something_else_is_never_replaced(remote: Path, tmp_path: Path) -> None:
    kept(tmp_path / "stored", comparison(0))
    tip = subprocess.run(["git", "-C", str(remote), "rev-parse", "main"], check=True, capture_output=True).stdout
    done = push(remote, tmp_path / "stored", tmp_path / "results", REDLINE_HISTORY="main")
    assert done.code == 2
    assert "the branch main holds something else than runs" in done.err
    assert (
        subprocess.run(["git", "-C", str(remote), "rev-parse", "main"], check=True, capture_output=True).stdout == tip
    )


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"REDLINE_HISTORY": ""}, "`` is no name of a branch"),
        ({"REDLINE_HISTORY": "--force"}, "`--force` is no name of a branch"),
        ({"REDLINE_KEEP": "0"}, "REDLINE_KEEP=0 is no number of runs"),
        ({"REDLINE": "no-such-redline"}, "there is no no-such-redline"),
    ],
)
def test_a_wrong_input_keeps_nothing(remote: Path, tmp_path: Path, variables: dict[str, str], says: str) -> None:
    kept(tmp_path / "stored", comparison(0))
    done = push(remote, tmp_path / "stored", tmp_path / "results", **variables)
    assert done.code == 2
    assert f"redline: {says}\n  hint: " in done.err


def test_a_remote_that_refuses_pushes_is_one_message(remote: Path, tmp_path: Path) -> None:
    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    kept(tmp_path / "stored", comparison(0))
    path = f"{without_sleep(tmp_path)}:{os.environ['PATH']}"
    done = push(
        remote, tmp_path / "stored", tmp_path / "results", PATH=path, REDLINE="/bin/true"
    )  # whose page is empty
    assert done.code == 1
    assert "redline: the branch kept could not be pushed\n  hint: " in done.err


def without_sleep(folder: Path) -> Path:
    """A folder for the PATH, in which `sleep` ends at once."""
    (folder / "bin").mkdir()
    (folder / "bin" / "sleep").symlink_to("/bin/true")
    return folder / "bin"


def test_a_comparison_that_failed_keeps_nothing(remote: Path, tmp_path: Path) -> None:
    clone, results = cloned(remote, "change"), tmp_path / "results"
    results.mkdir()
    done = bash("history", results, folder=clone, REDLINE_HISTORY="kept")
    assert done.code == 0
    assert "nothing is kept: there is no run in" in done.err


FAKE_REDLINE = """\
#!/bin/sh
printf '%s\\n' "$*" >>"$RUNNER_TEMP/calls"
[ "$1" = ab ] || { echo "$4"; exit; }
echo '## ab'
exit 3
"""


def test_the_steps_of_the_action_pass_on_inputs_and_the_exit_code(remote: Path, tmp_path: Path) -> None:
    action = YAML(typ="safe", pure=True).load(CHECKOUT / "action.yml")
    given = {name: str(declared.get("default", "")) for name, declared in action["inputs"].items()}
    given |= {
        "fail-on": "slower, inconclusive",
        "requests": "my requests.yaml",
        "flags": "--same-answers --load open:9",
        "name": "redline-api",
    }
    temp, output = tmp_path / "temp", tmp_path / "output"
    fake = temp / "redline-environment" / "bin" / "redline"
    fake.parent.mkdir(parents=True)
    fake.write_text(FAKE_REDLINE)
    fake.chmod(0o755)
    known = {f"inputs.{name}": text for name, text in given.items()} | {"runner.temp": str(temp)}
    surroundings = {"GITHUB_ACTION_PATH": CHECKOUT, "RUNNER_TEMP": temp, "GITHUB_OUTPUT": output}
    codes: dict[str, int] = {}
    for step in action["runs"]["steps"]:
        if "run" not in step or "ci/install" in step["run"] or "if" in step:
            continue
        variables = {name: _filled(text, known) for name, text in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path / "clone" if codes else cloned(remote, "change"),
            env={**os.environ, **{name: str(value) for name, value in surroundings.items()}, **variables},
            check=False,
        )
        codes[step["name"]] = done.returncode
        known["steps.history.outputs.code"] = ""
        known |= {f"steps.compare.outputs.{key}": value for key, value in map(_pair, output.read_text().splitlines())}
    assert codes == {"Compare": 0, "Fail if the comparison did": 3}
    results = Path(known["steps.compare.outputs.results"])
    assert results.name == "redline-api"
    assert (results / "junit.xml").read_text() == "junit\n"
    assert (temp / "calls").read_text().splitlines()[0] == (
        "ab --git=HEAD^..HEAD --threshold 2% --requests my requests.yaml --fail-on slower "
        f"--fail-on inconclusive --same-answers --load open:9 --format md -o {results}/run"
    )


def _filled(text: str, known: dict[str, str]) -> str:
    """The text with the values of its expressions, all of which are names."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def _pair(written: str) -> tuple[str, str]:
    key, _, value = written.partition("=")
    return key, value


class GitHub:
    """A pull request with comments, behind a `gh` that records its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("gh", GH)
        (folder / "gh").chmod(0o755)
        self.write("pulls", json.dumps([{"number": 3, "head": {"sha": "old"}}, {"number": 7, "head": {"sha": "abc"}}]))
        self.comments()
        self.write("comment.md", "## ab\n\nB is slower; ask @someone\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def comments(self, *comments: tuple[int, str, str]) -> None:
        listed = [{"id": number, "user": {"login": user}, "body": body} for number, user, body in comments]
        self.write("comments", json.dumps(listed))

    @property
    def body(self) -> str:
        """The body of the comment that was written last."""
        return (self.folder / "body").read_text()

    def run(self, name: str = "redline") -> tuple[Done, list[str]]:
        """The result of the script, and the calls that change something."""
        (self.folder / "calls").unlink(missing_ok=True)
        done = bash(
            "post-comment",
            folder=self.folder,
            PATH=f"{self.folder}:{os.environ['PATH']}",
            FAKE=str(self.folder),
            GH_REPO="shop/api",
            NAME=name,
            RUN="41",
            COMMIT="abc",
            BRANCH="somebody:change",
        )
        calls = (self.folder / "calls").read_text().splitlines()
        return done, [call.partition(" -F ")[0] for call in calls if "PATCH" in call or "POST" in call]


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    if shutil.which("jq") is None:
        pytest.skip("needs jq, in place of the one in gh")
    return GitHub(tmp_path)


def test_the_first_comment_is_made_and_later_ones_replace_it(github: GitHub) -> None:
    done, calls = github.run()
    assert done.code == 0, done.err
    assert calls == ["api --silent --method POST repos/shop/api/issues/7/comments"]
    body = github.body
    assert body.startswith("<!-- redline ab: redline -->\n## ab\n\nCommit abc, run 41, artifact `redline`\n\nB is ")
    github.comments((1, "somebody", body), (2, "github-actions[bot]", "another"), (5, "github-actions[bot]", body))
    _, calls = github.run()
    assert calls == ["api --silent --method PATCH repos/shop/api/issues/comments/5"]
    _, calls = github.run("redline-api")
    assert calls == ["api --silent --method POST repos/shop/api/issues/7/comments"]


def test_a_comment_of_an_earlier_commit_does_not_stay_when_a_run_has_no_results(github: GitHub) -> None:
    github.run()
    github.comments((5, "github-actions[bot]", github.body))
    (github.folder / "comment.md").unlink()
    _, calls = github.run()
    assert calls == ["api --silent --method PATCH repos/shop/api/issues/comments/5"]
    assert github.body == (
        "<!-- redline ab: redline -->\nRun 41 compared nothing.\n\nCommit abc, run 41, artifact `redline`\n"
    )


@pytest.mark.parametrize("at", ["@", "&#64;", "&#0064", "&#x40;", "&#X0040", "&commat;", "&COMMAT;"])
def test_a_comment_calls_nobody(github: GitHub, at: str) -> None:
    github.write("comment.md", f"ask {at}someone, {at}{at}&#115;omeone and ä&#65;\n")
    github.run()
    assert "-->\nask @\u2060someone, @\u2060@\u2060&#115;omeone and ä&#65;\n" in github.body


ABOUT = "Commit abc, run 41, artifact `redline`"
MORE = "\n**There is more: this is cut, the artifact has all.**\n"


def test_a_comment_is_never_longer_than_github_takes(github: GitHub) -> None:
    github.write("comment.md", "ä@" * 100_000)
    github.run()
    body = (github.folder / "body").read_bytes()
    assert 60_000 < len(body) < 65_536
    assert "�" not in body.decode()
    assert body.decode().endswith(MORE)


def test_a_comment_is_cut_between_rows_and_closes_what_is_open(github: GitHub) -> None:
    rows = "".join(f"| **route{number}** | +4.1% ▼<br>\\[+2.9, +5.3\\] |\n" for number in range(2000))
    opened = "<details open><summary>All</summary>"
    github.write("comment.md", f"B is slower\n\n{opened}\n\n| route | CPU |\n|---|---:|\n{rows}\n</details>\n")
    github.run()
    body = github.body
    assert len(body.encode()) < 65_536
    assert body.startswith("<!-- redline ab: redline -->\nB is slower\n")
    assert body.count("<details") == body.count("</details>") == 1
    assert body.endswith(f"\n</details>\n{MORE}")
    last = body.removesuffix(f"\n</details>\n{MORE}").splitlines()[-1]
    assert last.startswith("| **route")
    assert last.endswith("|")


def test_a_comment_that_fits_is_whole(github: GitHub) -> None:
    told = "\n<details><summary>All</summary>\n\nä\n\n</details>\n"
    github.write("comment.md", f"## ab\n{told}")
    github.run()
    assert github.body.endswith(f"-->\n## ab\n\n{ABOUT}\n{told}")


@pytest.mark.parametrize("long", [1, 100, 20_000, 59_000, 90_000])
@pytest.mark.parametrize("rows", [0, 10, 3_000])
def test_the_verdict_comes_first_and_is_whole_whatever_follows(github: GitHub, long: int, rows: int) -> None:
    """A verdict of `redline ab` has 30,000 bytes at most; a longer line is not its."""
    verdict = f"**slower: {'x' * long} +22%** [19, 25]"
    github.write("comment.md", f"{verdict}\n\n## ab\n\n" + "| row | +1.0% |\n" * rows)
    github.run()
    mark, first, _, about, *_ = github.body.splitlines()
    assert (mark, about) == ("<!-- redline ab: redline -->", ABOUT)
    assert first == verdict if long < 60_000 else verdict.startswith(first)
    assert len(github.body.encode()) < 65_536


@pytest.mark.parametrize("missing", ["comment.md", "pulls"])
def test_without_results_or_pull_request_nothing_is_written(github: GitHub, missing: str) -> None:
    if missing == "pulls":
        github.write("pulls", "[]")
    else:
        (github.folder / missing).unlink()
    done, calls = github.run()
    assert (done.code, calls) == (0, [])
    assert done.out.startswith("no comment: ")


@pytest.mark.parametrize(
    ("wheels", "says"),
    [
        ("empty", "has 0 redline-*.whl and 0 redline_engine-*.whl"),
        ("two", "has 2 redline-*.whl and 0 redline_engine-*.whl"),
        ("https://a/redline-1-py3-none-any.whl?b https://a/redline-2.whl", "has 2 redline-*.whl and 0 "),
        ("http://a/b.whl", "is no folder and no URL"),
    ],
)
def test_wheels_that_are_not_there_are_one_message(tmp_path: Path, wheels: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for version in (1, 2):
        (tmp_path / "two" / f"redline-{version}-py3-none-any.whl").touch()
    done = bash("install", tmp_path / "environment", folder=tmp_path, REDLINE_WHEELS=wheels)
    assert done.code == 2
    assert says in done.err
    assert "hint: " in done.err


def test_both_wheels_are_installed_as_files(tmp_path: Path) -> None:
    """A `python3` that records its calls installs them."""
    for name in ("redline-1-py3-none-any.whl", "redline_engine-1-py3-none-any.whl"):
        (tmp_path / name).touch()
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n[ "$2" != venv ] || {{ mkdir -p "$3/bin"; '
        f'cp {python} "$3/bin/python"; printf "#!/bin/sh\\n" >"$3/bin/redline"; chmod +x "$3/bin/redline"; }}\n'
    )
    python.chmod(0o755)
    path = f"{python.parent}:{os.environ['PATH']}"
    done = bash("install", tmp_path / "made", folder=tmp_path, REDLINE_WHEELS=str(tmp_path), PATH=path)
    assert done.code == 0, done.err
    assert (tmp_path / "calls").read_text().splitlines()[-1].split()[-2:] == [
        f"{tmp_path}/redline-1-py3-none-any.whl",
        f"{tmp_path}/redline_engine-1-py3-none-any.whl",
    ]
