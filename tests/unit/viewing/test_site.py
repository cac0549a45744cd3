"""The site of `redline view`: what each address answers, to whom, and how often it reads and judges."""

import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

import pytest

from redline.model import Run
from redline.render import RENDERERS
from redline.running.views import report_of, write_run_views
from redline.storage.runs import RunStore
from redline.viewing import site as site_module
from redline.viewing.site import Answer, Site
from tests.fakes.histories import comparison, stored_run
from tests.fakes.recordings import simulated_environment, simulated_run
from tests.fakes.searched import bench_in
from tests.fakes.stored import kept
from tests.unit.profiles.test_why import sampled_run

TOKEN = "a-token-of-the-test"
HOST = "127.0.0.1:8080"
NIGHTS = 7


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven runs, the last two slower and the last on another machine; a damaged one; a link; something else."""
    folder = tmp_path_factory.mktemp("view") / "nights"
    for place, speed in enumerate([2000.0] * 5 + [1700.0] * 2):
        other = simulated_environment().model_copy(update={"cores": 64}) if place == NIGHTS - 1 else None
        stored_run(folder, place, speed=speed, trials=3, environment=other)
        write_run_views(RunStore(folder / f"run-{place:02}"))
    (folder / "latest").symlink_to(folder / "run-06")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text("{")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture
def site(nights: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site that waits until all is read, however slow the machine is."""
    monkeypatch.setattr(site_module, "_PATIENCE_S", 60.0)
    return Site([nights], TOKEN)


def get(site: Site, path: str) -> Answer:
    return site.answer("GET", f"/{TOKEN}/{path}", HOST)


def text(site: Site, path: str) -> str:
    answer = get(site, path)
    assert answer.status is HTTPStatus.OK, answer
    return answer.content.decode()


def key_of(site: Site, name: str) -> str:
    return next(place.key for place in site.folders.places().values() if place.name == name)


def rows(content: str) -> list[str]:
    """The text of each row of the listing."""
    found = re.findall(r"<tr id=.*?</tr>", content, flags=re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def main_of(content: str | bytes) -> str:
    decoded = content.decode() if isinstance(content, bytes) else content
    return decoded[decoded.index("<main") : decoded.index("</main>")]


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "",
        "/wrong/",
        f"/{TOKEN}x/",
        f"/{TOKEN[:-1]}/",
        f"//{TOKEN}/",
        f"/%61{TOKEN[1:]}/",
        f"http://x/{TOKEN}/",
        "/é/",
    ],
)
def test_without_the_token_there_is_nothing(site: Site, target: str) -> None:
    answer = site.answer("GET", target, HOST)
    assert (answer.status, answer.content, answer.file) == (HTTPStatus.FORBIDDEN, b"", None)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "127.0.0.1:x", "10.0.0.1"]
)
def test_another_host_gets_nothing(site: Site, host: str) -> None:
    """A name of another site may lead here: DNS rebinding."""
    answer = site.answer("GET", f"/{TOKEN}/", host)
    assert (answer.status, answer.content) == (HTTPStatus.FORBIDDEN, b"")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8080", "LOCALHOST", "127.0.0.1"])
def test_this_machine_by_any_port_is_answered(site: Site, host: str) -> None:
    """A port that ssh forwards has another number."""
    assert site.answer("GET", f"/{TOKEN}/", host).status is HTTPStatus.OK


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "X"])
def test_it_only_reads(site: Site, method: str) -> None:
    answer = site.answer(method, f"/{TOKEN}/", HOST)
    assert (answer.status, answer.fields["Allow"]) == (HTTPStatus.METHOD_NOT_ALLOWED, "GET, HEAD")


@pytest.mark.parametrize("path", ["", "state", "history/", "nothing"])
def test_every_answer_is_guarded(site: Site, path: str) -> None:
    headers = get(site, path).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Content-Security-Policy"].endswith("frame-ancestors 'none'")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_tokens_are_random() -> None:
    tokens = {Site([]).token for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 32


def test_the_listing_has_all_runs_newest_first(site: Site) -> None:
    content = text(site, "")
    listed = rows(content)
    assert listed[0].startswith("damaged unknown run.json is damaged"), "by the time of its file"
    assert [row.split()[0] for row in listed[1:]] == [f"run-{place:02}" for place in reversed(range(NIGHTS))]
    assert "rust.hyper answers 1.6" in listed[1]
    assert listed[-1].endswith(" notes")
    assert "latest" not in content
    assert "notes/" not in content


def test_a_row_says_what_the_page_of_its_run_says(site: Site, nights: Path) -> None:
    report = report_of(RunStore(nights / "run-00"))
    assert (
        " ".join(re.sub(r"<[^>]*>", " ", main_of(RENDERERS["html"](report))).split()).count("rust.hyper answers 2.0")
        == 1
    )
    assert "rust.hyper answers 2.0" in rows(text(site, ""))[-1]


def test_a_run_is_its_report(site: Site, nights: Path) -> None:
    content = get(site, f"run/{key_of(site, 'run-02')}/").content
    assert main_of(content) == main_of(RENDERERS["html"](report_of(RunStore(nights / "run-02"))))
    assert b'<a href="../../">' in content
    assert b"Being measured" not in content


def test_a_run_is_judged_once_until_it_changes(nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored_run(tmp_path, 0)
    judged: list[Path] = []

    def counted(store: RunStore, *, keeps: bool) -> object:
        judged.append(store.folder)
        assert not keeps
        return report_of(store, keeps=keeps)

    monkeypatch.setattr(site_module, "report_of", counted)
    site = Site([tmp_path], TOKEN)
    address = f"run/{key_of(site, 'run-00')}/"
    first = text(site, address)
    assert text(site, address) == first
    assert len(judged) == 1
    store = RunStore(tmp_path / "run-00")
    store.set_aside(run.recordings[0].position)
    assert text(site, address) != first
    assert len(judged) == 2


def test_a_row_takes_over_what_its_page_judged(tmp_path: Path) -> None:
    stored_run(tmp_path, 0)
    site = Site([tmp_path], TOKEN)
    assert "not complete: 2 of 2 recordings, not judged: see its page" in rows(text(site, ""))[0]
    text(site, f"run/{key_of(site, 'run-00')}/")
    assert "rust.hyper answers" in rows(text(site, ""))[0]


def test_sampled_starts_are_planned_recordings_too(tmp_path: Path) -> None:
    run, store = sampled_run(), RunStore(tmp_path / "why")
    suite = run.manifest.plan.suite.model_copy(update={"auto": None})
    store.create(run.manifest.with_plan(run.manifest.plan.of_suite(suite)))
    cell = run.manifest.plan.cells[run.sampled[0].cell_ids[0]]
    site = Site([tmp_path], TOKEN)
    (before,) = site.folders.places().values()
    store.save(run.sampled[0], cell, profiled=True)
    planned = len(run.manifest.plan.duets) + len(run.manifest.plan.sampled)
    assert f"not complete: 1 of {planned} recordings" in rows(text(site, ""))[0]
    (after,) = site.folders.places().values()
    assert before.stamp != after.stamp


def test_stored_results_are_read_once(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site([nights], TOKEN)
    first = text(site, "")
    monkeypatch.setattr("redline.viewing.folders.read_report", None)
    monkeypatch.setattr("redline.viewing.folders._read_glance", None)
    assert text(site, "") == first


def test_what_is_not_read_in_time_follows(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "_PATIENCE_S", 0.0)
    site = Site([nights], TOKEN)
    first = text(site, "")
    assert sum("reading …" in row for row in rows(first)) == NIGHTS
    monkeypatch.setattr(site_module, "_PATIENCE_S", 60.0)
    stamp = json.loads(get(site, "state").content)["stamp"]
    assert f'data-stamp="{stamp}"' not in first
    second = text(site, "")
    assert f'data-stamp="{stamp}"' in second
    assert "reading …" not in second


def test_a_new_run_shows_without_a_restart(tmp_path: Path) -> None:
    site = Site([tmp_path / "runs"], TOKEN)
    first = text(site, "")
    assert "holds no run, comparison, search or load" in first
    assert f"-o {tmp_path / 'runs'}/first" in first
    before = get(site, "state").content
    stored_run(tmp_path / "runs", 0)
    assert get(site, "state").content != before
    assert "run-00" in rows(text(site, ""))[0]


def going(folder: Path, recordings: int) -> tuple[RunStore, Run]:
    """A run of which so much is stored."""
    run = simulated_run(trials=2, ceiling=None, baseline=None)
    store = RunStore(folder)
    store.create(run.manifest)
    for recording in run.recordings[:recordings]:
        store.save(recording, run.manifest.plan.cells[recording.cell_id])
    return store, run


def test_a_run_that_goes_on_says_so_and_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "_SHARE", 0)
    store, run = going(tmp_path / "one", 1)
    site = Site([tmp_path], TOKEN)
    planned = len(run.manifest.plan.trials)
    with store.locked():
        assert f"being measured: 1 of {planned} recordings" in rows(text(site, ""))[0]
        address = f"run/{key_of(site, 'one')}/"
        page = text(site, address)
        assert "Being measured:" in page
        assert "This run is not complete" not in page
        assert f"1 of {planned} trials" in page
        state = json.loads(get(site, f"{address}state").content)
        assert f'data-watch="state" data-stamp="{state["stamp"]}"' in page
        assert state["again_ms"] >= 2000
        assert "connect-src 'self'" in get(site, address).headers["Content-Security-Policy"]
        store.save(run.recordings[1], run.manifest.plan.cells[run.recordings[1].cell_id])
        assert json.loads(get(site, f"{address}state").content)["stamp"] != state["stamp"]
        assert f"2 of {planned} trials" in text(site, address)
    state = json.loads(get(site, f"{address}state").content)
    assert state["again_ms"] is None
    ended = text(site, address)
    assert "Being measured" not in ended
    assert "This run is not complete" in ended


def test_judging_takes_a_small_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is being measured is not disturbed by whoever looks at it."""
    monkeypatch.setattr(site_module, "_SHARE", 1_000_000)
    store, run = going(tmp_path / "one", 1)
    site = Site([tmp_path], TOKEN)
    with store.locked():
        address = f"run/{key_of(site, 'one')}/"
        first = text(site, address)
        state = json.loads(get(site, f"{address}state").content)
        store.save(run.recordings[1], run.manifest.plan.cells[run.recordings[1].cell_id])
        assert json.loads(get(site, f"{address}state").content)["stamp"] == state["stamp"]
        assert text(site, address) == first
    assert text(site, address) != first, "it has ended: nothing is disturbed"


def test_a_run_without_recordings_yet_has_a_page(tmp_path: Path) -> None:
    store, _ = going(tmp_path / "one", 0)
    site = Site([tmp_path], TOKEN)
    with store.locked():
        assert "data-watch" in text(site, f"run/{key_of(site, 'one')}/")


def test_a_run_whose_capacity_comes_first_has_a_page(tmp_path: Path) -> None:
    store, _ = going(tmp_path / "one" / "capacity", 0)
    site = Site([tmp_path], TOKEN)
    with store.locked():
        assert "being measured: its capacity comes first" in rows(text(site, ""))[0]
        assert "its capacity is measured first" in text(site, f"run/{key_of(site, 'one')}/")
    assert "it ended while its capacity was measured" in text(site, f"run/{key_of(site, 'one')}/")


def test_a_search_is_listed_and_shown(tmp_path: Path) -> None:
    bench_in(tmp_path / "search").run()
    site = Site([tmp_path], TOKEN)
    (row,) = rows(text(site, ""))
    assert " search " in row
    assert "loads so far, not judged" in row
    assert "Being measured" not in text(site, f"run/{key_of(site, 'search')}/")
    assert " meets " in rows(text(site, ""))[0]


def chosen(site: Site, names: Sequence[str]) -> Answer:
    return get(site, "compare?" + "&".join(f"run={key_of(site, name)}" for name in names))


def test_two_ticked_runs_are_compared_the_earlier_first(site: Site) -> None:
    moved = chosen(site, ["run-05", "run-01"])
    assert moved.status is HTTPStatus.SEE_OTHER
    address = moved.fields["Location"]
    assert address == f"compare/{key_of(site, 'run-01')}/{key_of(site, 'run-05')}/"
    page = text(site, address)
    assert "run-05 against run-01" in page
    assert '<span class="verdict slower">' in page
    assert "This compares" not in page


@pytest.mark.parametrize("names", [[], ["run-01"], ["run-01", "run-01"], ["run-01", "run-02", "run-03"]])
def test_other_numbers_of_runs_are_refused(site: Site, names: list[str]) -> None:
    answer = chosen(site, names)
    assert answer.status is HTTPStatus.OK
    assert b"two runs are compared, and" in answer.content


def test_runs_of_other_machines_are_compared_only_when_asked_again(site: Site) -> None:
    address = chosen(site, ["run-01", "run-06"]).fields["Location"]
    page = text(site, address)
    assert "come from environments that differ gravely: cores: 2 -&gt; 64" in page
    assert '<a href="anyway/">' in page
    anyway = text(site, f"{address}anyway/")
    assert "run-06 against run-01" in anyway
    assert "These environments differ gravely" in anyway
    assert '<a href="../../../../">' in anyway


def test_what_has_no_levels_is_compared_by_ratios_to_a_baseline_that_is_known(tmp_path: Path) -> None:
    for place in range(2):
        kept(tmp_path / f"run-{place:02}", comparison(place))
    bench_in(tmp_path / "search").run()
    site = Site([tmp_path], TOKEN)
    assert text(site, "").count('type="checkbox"') == 2
    said = text(site, chosen(site, ["run-00", "run-01"]).fields["Location"])
    assert "have duets alone, and their baseline A may not be the same: Redline does not know its build in both" in said
    assert "anyway/" not in said
    assert "search has no levels to compare" in text(site, chosen(site, ["run-00", "search"]).fields["Location"])


@pytest.mark.parametrize("path", ["compare/x/y/", "run/x/", "run/", "run", "history", "state/", "compare/x/", "report"])
def test_what_is_not_there_is_404(site: Site, path: str) -> None:
    assert get(site, path).status is HTTPStatus.NOT_FOUND


def test_the_history_has_the_change(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    page = text(site, "history/")
    assert "slower" in page
    assert "since run 6 of 7, run-05" in page
    assert "damaged" in page
    monkeypatch.setattr(site_module, "see_stored", None)
    assert text(site, "history/") == page


@pytest.mark.parametrize("more", [(), ("../nights", "notes/../run-06")], ids=["a folder", "folders that overlap"])
def test_a_long_history_says_how_far_it_is(
    more: tuple[str, ...], nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_module, "_PATIENCE_S", 0.0)
    site = Site([nights, *(nights / way for way in more)], TOKEN)
    answer = get(site, "history/")
    assert b"1 of 8 runs are read" in answer.content
    assert answer.fields["Refresh"] == "0"
    for _ in range(NIGHTS + 1):
        answer = get(site, "history/")
    assert "Refresh" not in answer.fields
    assert b"since run 6 of 7, run-05" in answer.content


def test_a_damaged_run_says_so(site: Site, nights: Path) -> None:
    page = text(site, f"run/{key_of(site, 'damaged')}/")
    assert "This cannot be shown" in page
    assert "run<wbr>.json is cut off" in page


def test_one_damaged_result_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, results in enumerate(["{", '{"format": "redline.report/1"}', "null", "", None]):
        stored_run(tmp_path, place)
        if results is not None:
            (tmp_path / f"run-{place:02}" / "results.json").write_text(results)
    write_run_views(RunStore(tmp_path / "run-04"))
    said = rows(text(Site([tmp_path], TOKEN), ""))
    assert len(said) == 5
    assert "rust.hyper answers" in said[0]
    assert all("results.json" in row for row in said[1:])
    monkeypatch.setattr("redline.viewing.folders.read_report", dict[Path, str]().__getitem__)
    assert "its results.json cannot be shown: KeyError" in rows(text(Site([tmp_path], TOKEN), ""))[0]


def test_several_folders_are_one_listing(nights: Path, tmp_path: Path) -> None:
    stored_run(tmp_path, 9)
    site = Site([nights, tmp_path, nights / "run-01"], TOKEN)
    listed = rows(text(site, ""))
    assert len(listed) == NIGHTS + 2, "run-01 is named twice, and shown once"
    assert str(tmp_path / "run-09") in " ".join(listed).replace(" ", "")


HOSTILE = "<script>alert(1)</script>\"'&\u202e"


def test_hostile_names_are_texts(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "kept", 0)
    suite = run.manifest.plan.suite.model_copy(update={"name": HOSTILE, "about": HOSTILE})
    plan = run.manifest.plan.model_copy(update={"suite": suite})
    manifest = run.manifest.model_copy(update={"name": HOSTILE, "plan": plan})
    folder = tmp_path / "shown" / HOSTILE.replace("/", "_")
    kept(folder, run.model_copy(update={"manifest": manifest}))
    site = Site([tmp_path / "shown"], TOKEN)
    key = next(iter(site.folders.places()))
    for path in ("", f"run/{key}/", f"compare/{key}/{key}/", "history/"):
        content = text(site, path)
        assert "<script>alert" not in content
        assert "\u202e" not in content
        assert "alert(1)" in content or path.startswith("compare")


@pytest.fixture
def with_files(tmp_path: Path) -> tuple[Site, str]:
    """A run with a profiler's page, a hidden file, links, a pipe, and secrets outside of it."""
    stored_run(tmp_path / "runs", 0)
    run = tmp_path / "runs" / "run-00"
    (run / "profiles" / "cpu").mkdir(parents=True)
    (run / "profiles" / "cpu" / "flame ü.html").write_text("<script>alert(1)</script>")
    (run / "profiles" / "stacks.json").write_text("{}")
    (tmp_path / "secret.json").write_text("SECRET")
    (tmp_path / "runs" / "secret.json").write_text("SECRET")
    (run / ".hidden.json").write_text("SECRET")
    (run / "link.json").symlink_to(tmp_path / "secret.json")
    (run / "out").symlink_to(tmp_path)
    os.mkfifo(run / "pipe.json")
    site = Site([tmp_path / "runs"], TOKEN)
    return site, f"run/{key_of(site, 'run-00')}/"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.json",
        "../../secret.json",
        "%2e%2e/secret.json",
        "%2e%2e%2fsecret.json",
        "..%2fsecret.json",
        "..%5csecret.json",
        "profiles/../../secret.json",
        "profiles/%2e%2e/%2e%2e/secret.json",
        "%252e%252e/secret.json",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "link.json",
        "out/secret.json",
        "out/runs/secret.json",
        ".hidden.json",
        "%2ehidden.json",
        "pipe.json",
        "profiles",
        "profiles/",
        "profiles/cpu",
        "run.json%00.html",
        "run.json/",
        "run.json/x",
        "%ff",
        "x" * 5000,
    ],
)
def test_no_path_leaves_the_run(with_files: tuple[Site, str], path: str) -> None:
    site, address = with_files
    answer = get(site, f"{address}{path}")
    assert answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.OK)
    assert answer.file is None
    assert b"SECRET" not in answer.content
    assert b"root:" not in answer.content
    assert answer.status is HTTPStatus.NOT_FOUND


def test_files_of_a_run_are_given_and_never_run(with_files: tuple[Site, str]) -> None:
    site, address = with_files
    flame = get(site, f"{address}profiles/cpu/flame%20%C3%BC.html?x=1")
    assert flame.file is not None
    with flame.file as opened:
        assert opened.read() == b"<script>alert(1)</script>"
    assert flame.kind == "application/octet-stream"
    assert flame.fields["Content-Disposition"] == "attachment; filename*=UTF-8''flame%20%C3%BC.html"
    stacks = get(site, f"{address}profiles/stacks.json")
    assert stacks.file is not None
    stacks.file.close()
    assert stacks.kind == "application/json; charset=utf-8"
    assert stacks.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_addresses_without_their_slash_move(site: Site) -> None:
    assert site.answer("GET", f"/{TOKEN}", HOST).fields["Location"] == f"/{TOKEN}/"
    key = key_of(site, "run-01")
    assert get(site, f"run/{key}").fields["Location"] == f"{key}/"


def test_nothing_is_written_into_the_folders(nights: Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in nights.rglob("*")}
    site = Site([nights], TOKEN)
    for path in ("", "state", "history/", f"run/{key_of(site, 'run-00')}/"):
        get(site, path)
    assert {path: path.lstat().st_mtime_ns for path in nights.rglob("*")} == before


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _folder(file: Path) -> None:
    file.mkdir()


def _socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))


def _loop(file: Path) -> None:
    file.symlink_to(file.name)


def _sparse(file: Path) -> None:
    with file.open("wb") as made:
        os.truncate(made.fileno(), 1 << 42)


ODD = [_fifo, _endless, _folder, _socket, _loop, _sparse]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose views are written, and one without, of which tests get copies."""
    folder = tmp_path_factory.mktemp("two")
    kept(folder / "good", simulated_run(trials=2))
    write_run_views(RunStore(folder / "good"))
    kept(folder / "odd", simulated_run(trials=2))
    return folder


@pytest.fixture
def short(two_runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with two runs, by a short path: that of a socket has at most 107 characters."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(two_runs, "runs"))


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__)
@pytest.mark.parametrize("name", ["run.json", "results.json"])
def test_an_odd_file_is_one_damaged_row(short: Path, name: str, odd: Callable[[Path], None]) -> None:
    file = short / "odd" / name
    file.unlink(missing_ok=True)
    odd(file)
    site = Site([short], TOKEN)
    good, bad = sorted(rows(text(site, "")), key=lambda row: "odd" in row)
    assert "rust.hyper" in text(site, f"run/{key_of(site, 'good')}/")
    assert "cannot be read" not in good
    assert f"{name} cannot be read" in bad
    assert get(site, f"run/{key_of(site, 'odd')}/").status is HTTPStatus.OK
    assert get(site, "history/").status is HTTPStatus.OK


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__)
def test_an_odd_recording_leaves_the_run_its_page(short: Path, odd: Callable[[Path], None]) -> None:
    file = min((short / "odd" / "recordings").iterdir())
    file.unlink()
    odd(file)
    site = Site([short], TOKEN)
    page = text(site, f"run/{key_of(site, 'odd')}/")
    assert f"{file.name} cannot be read" in page
    assert get(site, "history/").status is HTTPStatus.OK


@pytest.mark.parametrize("began", [10**30, 1 << 63, -1])
def test_a_time_that_no_clock_shows_is_one_damaged_row(short: Path, began: int) -> None:
    file = short / "odd" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "created_unix_ns": began}))
    site = Site([short], TOKEN)
    assert sorted("damaged" in row for row in rows(text(site, ""))) == [False, True]
    assert "This cannot be shown" in text(site, f"run/{key_of(site, 'odd')}/")
    assert get(site, "history/").status is HTTPStatus.OK
