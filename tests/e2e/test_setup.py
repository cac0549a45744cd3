"""Commands around the starts of servers, their variables, and that no secret is stored or shown."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.cli import exits
from redline.model import Report
from tests.e2e.conftest import Done, Redline
from tests.e2e.leftovers import left_of
from tests.e2e.test_documented_commands import SHORT_LIMIT, SHORT_LOAD

pytestmark = pytest.mark.e2e

SECRETS = ("tok-4f1b9c22", "pass word/77")
AROUND = """
    env: {DATABASE_URL: 'db://shop:${SHOP_PASSWORD}@localhost/{port}'}
    env_file: .env
    before: echo "before $PORT $TOKEN" | tee -a trace
    prepare: echo "prepare $PORT $DATABASE_URL" | tee -a trace
    after: echo "after $PORT $TOKEN" | tee -a trace
"""


@pytest.fixture
def lab(redline: Redline, tmp_path: Path) -> Redline:
    """A folder with a file of variables, and an environment with a password."""
    (tmp_path / ".env").write_text(f"# of the shop\nexport TOKEN='{SECRETS[0]}'\nDEBUG=1\n")
    (tmp_path / "tmp").mkdir()
    redline.environment |= {"SHOP_PASSWORD": SECRETS[1], "TMPDIR": str(tmp_path / "tmp")}
    return redline


def project(folder: Path, start: str, around: str = AROUND, more: str = "") -> None:
    """A server that says its secrets before it becomes what `start` says, and the same without any."""
    (folder / "start.sh").write_text(f'echo "token $TOKEN at $DATABASE_URL"\n{start}\n')
    second = "  - {name: plain, start: 'sh start.sh {port}'}\n"
    (folder / "redline.yaml").write_text(
        f"servers:\n  - name: shop\n    start: sh start.sh {{port}}{around}{second if more else ''}{more}"
    )


def said(folder: Path, *done: Done) -> Iterator[str]:
    """All that was printed or stored, but what the user wrote, and what the commands did."""
    own = {folder / name for name in (".env", "trace")}
    yield from (text for one in done for text in (one.out, one.err))
    yield from (
        file.read_bytes().decode(errors="replace") for file in folder.rglob("*") if file.is_file() and file not in own
    )


def check_no_secret(folder: Path, *done: Done) -> None:
    for text in said(folder, *done):
        for secret in SECRETS:
            assert secret not in text
            assert json.dumps(secret)[1:-1] not in text


def test_they_run_around_each_start_and_no_secret_is_stored(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    project(tmp_path, f'exec {oracle} null --port "$1"', more="budget: 4s\nloads: {few: {closed: {users: 2}}}\n")
    done = lab("run", "-o", "kept", "--json")
    report = Report.model_validate(done.json)
    assert report.run.starts >= 3
    trace = (tmp_path / "trace").read_text().splitlines()
    ports = [line.split()[1] for line in trace if line.startswith("before")]
    assert len(ports) == 2 * report.run.starts
    for port in ports:
        of_port = [line for line in trace if line.split()[1] == port]
        assert of_port[:1] == [f"before {port} {SECRETS[0]}"]
        assert of_port[1:2] == [f"prepare {port} db://shop:{SECRETS[1]}@localhost/{port}"]
        assert of_port[2:3] == [f"after {port} {SECRETS[0]}"]
    assert report.run.setup_seconds > 0
    assert "set up in" in done.err
    log = next((tmp_path / "kept/logs").glob("0000-*")) / "server-0.log"
    assert log.read_text().startswith(f"token *** at db://shop:***@localhost/{ports[0]}\n")
    assert log.with_name("server-0-before.log").read_text() == f"before {ports[0]} ***\n"
    again = lab("report", "kept", "--format", "md")
    check_no_secret(tmp_path, done, again)
    assert left_of(lab) == []


@pytest.mark.long
def test_suites_and_other_commands_keep_none_either(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    project(tmp_path, f'exec {oracle} null --port "$1"')
    done = [
        lab("load", *SHORT_LOAD, "--json", "-o", "loaded"),
        lab("limit", *SHORT_LIMIT, "--objective", "p99 < 1s", "--trials", "2", "--no-beyond", "-o", "limited"),
        lab("check", "--json"),
    ]
    assert {one.code for one in done} <= {0, 1, 3}, [one.err for one in done]
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/suite.yaml").write_text(
        f"servers:\n  - name: shop\n    folder: ..\n    command: sh start.sh {{port}}{AROUND}"
        "scenarios: [{name: root, get: /}]\nloads: {few: {closed: {users: 2}, for: 200ms}}\nwarmup: 50ms\ntrials: 1\n"
    )
    written = lab("run", "suites/suite.yaml", "-o", "ran").measured()
    assert "${SHOP_PASSWORD}" in (tmp_path / "ran/run.json").read_text()
    check_no_secret(tmp_path, *done, written)


@pytest.mark.parametrize(
    ("start", "around", "words"),
    [
        ("env; echo ERROR: no database for $TOKEN; exit 3", AROUND, "its last words: ERROR: no database for ***"),
        ("exit 1", AROUND.replace("before: ", "before: echo ERROR $TOKEN; false; "), "its last words: ERROR ***"),
    ],
)
def test_failures_show_no_secret(lab: Redline, tmp_path: Path, start: str, around: str, words: str) -> None:
    project(tmp_path, start, around, more="budget: 4s\nloads: {few: {closed: {users: 2}}}\n")
    done = lab("run", "-o", "kept")
    done.refused(exits.COULD_NOT_RUN, words)
    alone = lab("run", "-s", "shop", "-o", "alone", "--trials", "1")
    assert alone.code == exits.COULD_NOT_RUN
    check_no_secret(tmp_path, done, alone)
    assert (tmp_path / "trace").read_text().count("after") >= 1
    assert left_of(lab) == []


def test_a_failing_after_fails_what_was_measured(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    project(
        tmp_path,
        f'exec {oracle} null --port "$1"',
        "\n    after: echo ERROR still in use; exit 4\n",
        "budget: 4s\nloads: {few: {closed: {users: 2}}}\n",
    )
    done = lab("run", "-o", "kept")
    done.refused(exits.COULD_NOT_RUN, "shop: `after` ended with code 4; its last words: ERROR still in use")
    alone = lab("run", "-s", "shop", "-d", "200ms", "--warmup", "50ms", "--trials", "1", "--json")
    assert alone.code == exits.COULD_NOT_RUN
    (trial,) = Report.model_validate(alone.json).cells[0].trials
    assert "`after` ended with code 4" in trial.failure
    assert left_of(lab) == []


def test_a_failing_after_leaves_what_a_load_measured(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "redline.yaml").write_text(
        f"servers: [{{name: shop, start: '{oracle} null --port {{port}}', after: echo ERROR still in use; exit 4}}]\n"
    )
    done = redline("load", *SHORT_LOAD, "-o", "kept", "--json")
    assert done.code == exits.COULD_NOT_RUN
    result = done.json
    assert (result["valid"], result["counts"]["outcomes"]["ok"] > 0) == (False, True)
    assert any("`after` ended with code 4" in finding["message"] for finding in result["findings"])
    assert (tmp_path / "kept" / "recordings").is_dir()


@pytest.mark.long
def test_setting_up_counts_in_no_budget(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    project(
        tmp_path,
        f'exec {oracle} null --port "$1"',
        "\n    before: sleep 0.2\n",
        "budget: 4s\nloads: {few: {closed: {users: 2}}}\n",
    )
    done = lab("run", "-o", "kept", "--json")
    run = Report.model_validate(done.json).run
    assert run.starts >= 3
    assert run.setup_seconds >= 0.2 * 2 * run.starts
    assert f"{run.starts} starts in " in (text := (tmp_path / "kept/report.html").read_text())
    assert "of setting up" in text
    stored = [json.loads(file.read_text()) for file in (tmp_path / "kept/duets").iterdir()]
    assert sum(duet["setup_ns"] for duet in stored) / 1e9 == pytest.approx(run.setup_seconds)
    assert sum(duet["took_ns"] for duet in stored) / 1e9 == pytest.approx(run.seconds)


def test_an_interrupt_while_setting_up_cleans_up(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    around = "\n    before: touch begun; sleep 600\n    after: touch cleaned\n"
    project(tmp_path, f'exec {oracle} null --port "$1"', around, "budget: 4s\nloads: {few: {closed: {users: 2}}}\n")
    with lab.start("run", "-o", "kept") as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == exits.INTERRUPTED, err
    assert "Traceback" not in err
    assert (tmp_path / "cleaned").exists()
    assert left_of(lab) == []


def test_what_is_missing_is_said_before_anything_starts(lab: Redline, oracle: Path, tmp_path: Path) -> None:
    project(tmp_path, f'exec {oracle} null --port "$1"', more="budget: 4s\nloads: {few: {closed: {users: 2}}}\n")
    del lab.environment["SHOP_PASSWORD"]
    for command in ("run", "check", "ab"):
        lab(command).refused(2, "shop: `env`, DATABASE_URL: the variable SHOP_PASSWORD is not set")
    lab.environment["SHOP_PASSWORD"] = SECRETS[1]
    (tmp_path / ".env").write_text("TOKEN=1\nno variable\n")
    lab("run").refused(2, ".env:2: this is no variable")
    (tmp_path / ".env").unlink()
    lab("run").refused(2, "shop: `env_file`: there is no file")
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "runs").exists()
