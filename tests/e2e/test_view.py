"""`redline view` as a user has it: in a browser, beside a run that goes on, and at its end."""

import re
import shlex
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from redline.running.views import write_run_views
from redline.storage.runs import RunStore
from tests.e2e.browsing import NEEDS_BROWSER, barriers, browser
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab
from tests.e2e.test_documented_commands import VIEWED
from tests.fakes.histories import stored_run
from tests.fakes.reports import nasty

__all__ = ["browser"]

pytestmark = pytest.mark.e2e
WAIT_MS = 90_000
"""A busy machine takes its time."""


@contextmanager
def viewing(redline: Redline, *args: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address that the command prints, and its process, which is ended."""
    process = redline.start("view", *args)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.communicate()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("command", VIEWED)
def test_a_documented_command_serves_until_ctrl_c(redline: Redline, command: str) -> None:
    _, *args = shlex.split(command)
    for name in ("runs", "nightly"):
        stored_run(redline.folder / name, 0)
    args = [str(free_port()) if before == "--port" else arg for before, arg in zip(["", *args], args, strict=False)]
    with viewing(redline, *args) as (url, process):
        assert status(url) == 200
        assert status(url.replace("127.0.0.1", "localhost")) == 200
        assert status("/".join((*url.split("/")[:3], "wrong", ""))) == 403
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, ""), err
    assert err.startswith("redline: it shows what is in ")
    assert len(err.splitlines()) == 1


def test_sigterm_ends_it_as_it_ends_others(redline: Redline) -> None:
    with viewing(redline) as (url, process):
        assert status(url) == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 143


def test_a_port_in_use_is_one_message(redline: Redline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        redline("view", "--port", port).refused(
            2, f"--port {port}: 127.0.0.1:{port} cannot be listened on: ", "ss -ltnp"
        )
    redline("view", "nowhere").refused(2, "there is no directory nowhere")


@dataclass
class Seen:
    """A page, and everything that it logged or asked for."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith((self.url, "data:"))] == []
        sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(sideways) == 0


@pytest.fixture
def see(browser: Browser) -> Iterator[Callable[..., Seen]]:
    contexts = []
    expect.set_options(timeout=WAIT_MS)

    def opening(url: str, *, width: int = 1280, scripts: bool = True) -> Seen:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if width < 600 else "light",
            java_script_enabled=scripts,
        )
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        seen = Seen(context.new_page(), url)
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(url)
        return seen

    yield opening
    for context in contexts:
        context.close()


@pytest.fixture
def nights(redline: Redline) -> Path:
    """Runs of seven nights, the last two slower, and a run whose texts are hostile."""
    folder = redline.folder / "runs"
    for place, speed in enumerate([2000.0] * 5 + [1700.0] * 2):
        stored_run(folder, place, speed=speed, trials=3)
        write_run_views(RunStore(folder / f"run-{place:02}"))
    hostile = folder / "<img src=x onerror=alert(1)>"
    run = stored_run(redline.folder / "other", 1)
    (redline.folder / "other" / "run-01").rename(hostile)
    suite = run.manifest.plan.suite.model_copy(update={"name": nasty().run.suite})
    plan = run.manifest.plan.model_copy(update={"suite": suite})
    changed = run.manifest.model_copy(update={"plan": plan, "name": "<b>bold</b>"})
    (hostile / "run.json").write_text(changed.model_dump_json())
    return folder


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.long)])
@pytest.mark.usefixtures("nights")
@NEEDS_BROWSER[0]
@NEEDS_BROWSER[1]
def test_runs_are_found_opened_and_compared(redline: Redline, see: Callable[..., Seen], width: int) -> None:
    with viewing(redline) as (url, _):
        seen = see(url, width=width)
        page, rows = seen.page, seen.page.locator(".listed tbody tr:visible")
        expect(rows).to_have_count(8)
        assert page.locator("img").count() == 0
        assert page.locator("tbody b").count() == 0
        assert barriers(page) == []
        seen.assert_quiet()
        page.get_by_label("Show only those with").fill("RUN-05 answers")
        expect(rows).to_have_count(1)
        page.get_by_label("Show only those with").fill("run-0")
        expect(rows).to_have_count(7)
        compare = page.get_by_role("button", name="Compare two ticked runs")
        expect(compare).to_be_disabled()
        page.get_by_label("Compare run-06").check()
        expect(compare).to_be_disabled()
        page.get_by_label("Compare run-00").check()
        compare.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("run-06 against run-00")
        expect(page.locator(".verdict.slower").first).to_be_visible()
        assert barriers(page) == []
        seen.assert_quiet()
        page.get_by_role("link", name="all runs").click()
        page.get_by_role("link", name="run-05").click()
        expect(page.get_by_role("heading", name="The answer, in words")).to_be_visible()
        seen.assert_quiet()
        page.get_by_role("link", name="all runs").click()
        page.get_by_role("link", name="history").click()
        expect(page.get_by_role("heading", name="What changed")).to_be_visible()
        expect(page.get_by_text("since run 7 of 8").first).to_be_visible()
        seen.assert_quiet()


@pytest.mark.usefixtures("nights")
@NEEDS_BROWSER[0]
@NEEDS_BROWSER[1]
def test_two_runs_are_compared_without_scripts(redline: Redline, see: Callable[..., Seen]) -> None:
    with viewing(redline) as (url, _):
        page = see(url, scripts=False).page
        page.get_by_label("Compare run-06").check()
        page.get_by_label("Compare run-00").check()
        page.get_by_role("button", name="Compare two ticked runs").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("run-06 against run-00")


@NEEDS_BROWSER[0]
@NEEDS_BROWSER[1]
def test_a_run_shows_while_it_goes_on(redline: Redline, oracle: Path, see: Callable[..., Seen]) -> None:
    suite = Lab(redline.folder, oracle).suite("good.one", trials=6)
    with viewing(redline) as (url, process):
        listing = see(url)
        expect(listing.page.get_by_text("holds no run")).to_be_visible()
        measuring = redline.start("run", suite, "-o", "runs/live")
        row = listing.page.locator(".listed tbody tr")
        expect(row).to_contain_text("being measured:")
        run = see(url + str(row.locator("a").get_attribute("href")))
        expect(run.page.locator(".notice", has_text="Being measured:")).to_be_visible()
        fold = run.page.locator("details", has=run.page.get_by_text("Versions and machine", exact=True)).last
        fold.locator("summary").click()
        before = run.page.locator(".facts").inner_text()
        expect(run.page.locator(".facts")).not_to_have_text(before)
        expect(fold).to_have_attribute("open", "")
        _, err = measuring.communicate(timeout=WAIT_MS / 1000)
        assert "report:" in err, err
        expect(run.page.locator(".facts")).to_contain_text("6 of 6 trials")
        expect(run.page.locator(".notice", has_text="Being measured:")).to_have_count(0)
        expect(fold).to_have_attribute("open", "")
        expect(row).to_contain_text(re.compile("good.one (answers|has no valid result)"))
        listing.assert_quiet()
        run.assert_quiet()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        expect(listing.page.get_by_text("redline view has ended")).to_be_visible(timeout=WAIT_MS)
