"""Kinds of servers that another package brings: that of the guide, and what goes wrong with one."""

import json
import shlex

import psutil
import pytest

from tests.e2e.conftest import Done, Redline
from tests.e2e.extended import Guide, ended
from tests.e2e.test_documented_commands import documented

pytestmark = pytest.mark.e2e
PAGE = "own-launchers.md"
SHORT = ("-d", "300ms", "--warmup", "100ms", "--trials", "1")


@pytest.fixture
def guide(redline: Redline) -> Guide:
    guide = Guide(PAGE)
    (redline.folder / "shop.py").write_text(guide.block("py"))
    (redline.folder / "shop.yaml").write_text(guide.block("yaml"))
    return guide


def left_over(redline: Redline) -> list[str]:
    """Processes that still serve in the folder of the test."""
    running = (process.info for process in psutil.process_iter(["cmdline", "cwd"]))
    return [
        " ".join(info["cmdline"])
        for info in running
        if info["cmdline"] and "redline_wsgi" in info["cmdline"] and info["cwd"] == str(redline.folder)
    ]


def test_the_launcher_of_the_guide_starts_servers_of_its_kind(redline: Redline, guide: Guide) -> None:
    (command,) = documented(f"docs/guide/{PAGE}")
    args = [*shlex.split(command), *SHORT]
    code, _, err = ended(redline, *args)
    assert (code, "there is no launcher wsgi" in err, (redline.folder / "runs").exists()) == (2, True, False)
    guide.install(redline)
    Done(*ended(redline, *args)).measured()
    run = redline.folder / "runs/shop"
    report = json.loads((run / "results.json").read_text())
    assert {cell["server"] for cell in report["cells"]} == {"shop", "shop+backlog=16"}
    assert report["run"]["servers"]["shop"] == "started by the launcher wsgi, with app=shop:app, backlog=128"
    stored = [json.loads(file.read_text()) for file in run.glob("recordings/*.json")]
    for recording in stored:
        series = {(it["subject"], it["name"]) for it in recording["series"]}
        assert ("server", "cpu_ns") in series, series
        assert recording["traffic"]["counts"]["outcomes"]["ok"] > 0
    facts = [recording["server"] for recording in stored]
    assert all("redline_wsgi" in it["command"] and it["runtimes"] == ["python"] for it in facts)
    assert left_over(redline) == []


def failing(guide: Guide, replaced: str, by: str) -> str:
    code = guide.block("python")
    assert replaced in code
    return code.replace(replaced, by)


@pytest.mark.long
def test_a_launcher_that_fails_is_the_failure_of_its_trial(redline: Redline, guide: Guide) -> None:
    yields = "        yield StartedServer(pid=process.pid)\n"
    for by, words in (
        ("        raise OSError('no such unit')\n", "could not start shop: OSError: no such unit (redline_wsgi.py:"),
        ("        yield process\n", "gave Popen for shop, not redline.ports.StartedServer"),
        ("        import os\n        yield StartedServer(pid=os.getpid())\n", "in the process of Redline"),
        (yields + "        raise OSError('stuck')\n", "could not stop shop: OSError: stuck"),
    ):
        guide.install(redline, failing(guide, yields, by))
        code, _, err = ended(redline, "run", "shop.yaml", "-w", "backlog=128", *SHORT)
        assert (code, "Traceback" in err) == (1, False), err
        assert words in " ".join(err.split())
    assert left_over(redline) == []


def test_an_application_that_cannot_be_loaded_is_said_in_its_words(redline: Redline, guide: Guide) -> None:
    guide.install(redline)
    (redline.folder / "shop.py").write_text("raise SystemExit('no database')\n")
    code, _, err = ended(redline, "run", "shop.yaml", "-w", "backlog=128", *SHORT)
    assert code == 1
    assert "shop ended before it was ready; its last words: no database" in " ".join(err.split())
    suite = redline.folder / "shop.yaml"
    suite.write_text(suite.read_text().replace('app: "shop:app", ', ""))
    code, _, err = ended(redline, "run", "shop.yaml", "-w", "backlog=128", *SHORT)
    assert (code, "shop has no application" in err) == (1, True)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("{launcher: wsgi, command: './a {port}'}", "this server has both `command` and `launcher`"),
        ("{launcher: wsgi, before: ./a}", "a server with `launcher` cannot have `before`"),
        ("{launcher: wsgi, with: {jdk: 21}}", "`jdk` is an option of the catalogue's servers"),
        ("{launcher: wsgi, with: {app: [a, 'b c']}}", "the value `b c` is not safe in a file name"),
        ("{launcher: WSGI}", "launcher"),
    ],
)
def test_a_suite_with_a_wrong_launcher_is_refused(server: str, words: str, redline: Redline, guide: Guide) -> None:
    suite = redline.folder / "shop.yaml"
    text = suite.read_text()
    suite.write_text("\n".join([f"servers: [{server}]", *text.splitlines()[1:]]))
    done = redline("check", "shop.yaml")
    assert done.code == 2
    assert words in done.err
