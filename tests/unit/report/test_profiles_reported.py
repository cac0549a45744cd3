"""The display of profiles: sentences, tables, bars, heat maps, and the data of flame graphs."""

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.document.blocks import Fold, Table
from redline.document.figures import Flames, Heat, StackedBars
from redline.model import Estimate, Metric, NativeMemory, PlannedTrial, Points, ProfileChange, Report, Skipped
from redline.render import RENDERERS, markdown
from redline.render.html import heat_map
from redline.render.terminal import render
from redline.report.profiles import profile_sections, profiles_payload, sentence
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.pages import data, page, section
from tests.fakes.profiles import VANILLA, profiled, report_with_profiles, stacks_of
from tests.fakes.recordings import SATURATE, simulated_recording, simulated_run
from tests.fakes.reports import healthy


def shown(report: Report | None = None) -> str:
    report = report or report_with_profiles()
    return " ".join(render(profile_sections(report), Console(width=120)).plain.split())


def text(change: ProfileChange) -> str:
    return "".join(span.text for span in sentence(change, "b", "a"))


def estimate(value: float, half: float | None = 0.01, unit: str = "share") -> Estimate:
    low, high = (None, None) if half is None else (value - half, value + half)
    return Estimate(value=value, low=low, high=high, unit=unit, n=1, method="t")


def change(
    *libraries: tuple[str, float, float | None], ratio: float | None = 1.24, against: str = "a"
) -> ProfileChange:
    found = tuple(Points(name=name, points=estimate(value), p_adjusted=p) for name, value, p in libraries)
    return ProfileChange(
        against=against,
        ratio=None if ratio is None else estimate(ratio, 0.004, "ratio"),
        libraries=found,
        frames=(),
    )


def test_a_difference_is_explained_in_a_sentence() -> None:
    assert text(change(("tapir", 0.198, 1e-9), ("cats", -0.012, 0.01), ("netty", 0.02, 0.6))) == (
        "b against a: +24.0% CPU per request [+23.6, +24.4]. In points of that: tapir +19.8 ±1.0, cats \u22121.2 ±1.0."
    )
    assert text(change(("netty", 0.02, 0.6))).endswith("]. No library differs by more than chance.")


def test_where_the_ratio_says_nothing_shares_that_differ_are_named() -> None:
    shares = (Points(name="tapir", points=estimate(0.271, 0.016), p_adjusted=1e-9),)
    found = change(("tapir", 0.51, 0.2)).model_copy(update={"shares": shares})
    assert text(found).endswith("]. What each library adds to that is not known; in points of share: tapir +27.1 ±1.6.")


def test_an_interval_that_reaches_further_to_one_side_has_its_ends() -> None:
    skewed = Estimate(value=0.51, low=0.24, high=1.08, unit="share", n=1, method="t")
    found = change().model_copy(update={"libraries": (Points(name="tapir", points=skewed, p_adjusted=1e-9),)})
    assert text(found).endswith("In points of that: tapir +51.0 [+24.0, +108.0].")


def test_shares_alone_are_named_as_such() -> None:
    assert text(change(("tapir", 0.1, 0.001), ratio=None)) == "b against a, in points of share: tapir +10.0 ±1.0."
    assert text(change(ratio=None)) == "b against a, in points of share: no library differs by more than chance."
    assert text(change(("gc", 0.1, 0.001), ratio=None, against="")) == (
        "b, slow moments against the rest, in points of share: gc +10.0 ±1.0."
    )


def test_the_terminal_has_libraries_with_intervals_and_functions() -> None:
    text = shown()
    assert text.count("Where the time goes") == 1
    assert re.search(r"tapir's interpreter +\u2013 +16\.\d% ±0\.\d", text)
    assert re.search(r"tapir's interpreter \+(19|20)\.\d ±0\.\d, tapir \+[34]\.\d ±0\.\d\.", text)
    assert "http4s java.lang.String.<init>" in text
    assert re.search(r"Threads of http4s.tapir: io-compute \(4\) 9\d(\.\d)?%, GC Thread \(4\) [34](\.\d)?%", text)
    assert "http4s.tapir: functions that differ most from the baseline" in text
    assert re.search(r"\+1[12]\.\d ±0\.\d scala.collection.immutable.List.map", text)
    assert "Sampled by async-profiler 4.6, ctimer, every 1.00 ms, one start" in text


def test_long_names_of_functions_are_folded_and_do_not_split_their_table() -> None:
    first, *_ = report_with_profiles().profiles
    frames = tuple(each.model_copy(update={"frame": f"{'com.acme.' * 12}run"}) for each in first.frames)
    report = report_with_profiles().model_copy(update={"profiles": (first.model_copy(update={"frames": frames}),)})
    lines = render(profile_sections(report), Console(width=80)).plain.splitlines()
    heads = [line.split() for line in lines if line.endswith("function")]
    assert [(each[0], each[-1]) for each in heads] == [("self", "function")]
    assert max(map(len, lines)) <= 80


def test_what_the_profiler_costs_is_not_known_where_trials_scatter() -> None:
    assert re.search(r"Under the profiler: http4s.vanilla CPU per request \S+% \[\S+, \S+\], throughput", shown())
    wild = {Metric.CPU_PER_REQUEST: estimate(1.0, 0.99, "ratio")}
    profiles = tuple(one.model_copy(update={"overhead": wild}) for one in report_with_profiles().profiles)
    text = shown(report_with_profiles().model_copy(update={"profiles": profiles}))
    assert "Under the profiler: http4s.vanilla CPU per request not known; http4s.tapir" in text


def test_memory_that_a_jvm_has_for_each_purpose_is_a_table() -> None:
    parts = {"Java Heap": 512 << 20, "Other": 64 << 20, "Thread": 1 << 20, "Symbol": 1 << 10}
    native = tuple(NativeMemory(purpose=name, committed_bytes=size) for name, size in parts.items())
    first, *others = report_with_profiles().profiles
    text = shown(
        report_with_profiles().model_copy(update={"profiles": (first.model_copy(update={"native": native}), *others)})
    )
    assert "What the JVM itself counts, at the end of the profile" in text
    assert re.search(r"the heap +512 MiB buffers outside of the heap \(Other\) +64\.0 MiB", text)
    assert re.search(r"stacks of threads +1\.00 MiB", text), "small, but looked for"
    assert "symbols" not in text
    assert "What the JVM itself counts" not in shown()


def test_many_profiles_have_their_functions_on_the_page_alone() -> None:
    many = report_with_profiles().model_copy(update={"profiles": report_with_profiles().profiles * 2})
    assert "java.lang.String" not in shown(many)
    assert "java.lang.String" in page(many).text


def test_markdown_has_the_same_tables() -> None:
    made = markdown.render(profile_sections(report_with_profiles())).decode()
    assert made.startswith("### Where the time goes")
    assert "| library | http4s.vanilla | http4s.tapir |" in made


def test_the_page_has_bars_heat_maps_and_one_flame_graph() -> None:
    (made,) = profile_sections(report_with_profiles())
    inner = [each for block in made.blocks if isinstance(block, Fold) for each in block.blocks]
    bars = [each for each in inner if isinstance(each, StackedBars)]
    assert len(bars) == 2
    for bar in bars[0].rows:
        assert sum(share for _, share, _ in bar.parts) == pytest.approx(1)
    vanilla, tapir = bars[0].rows
    assert vanilla.length / tapir.length == pytest.approx(1 / 1.24, abs=0.01)
    assert sum(isinstance(each, Heat) for each in inner) == 4
    assert sum(isinstance(each, Flames) for each in made.blocks) == 1
    tables = [each for each in inner if isinstance(each, Table)]
    assert any("io-compute" in row for table in tables for row in table.rows)


def test_a_heat_map_of_nothing_is_left_out() -> None:
    profiles = tuple(
        each.model_copy(update={"heat": each.heat.model_copy(update={"totals": (0,) * len(each.heat.totals)})})
        for each in report_with_profiles().profiles
        if each.heat
    )
    (made,) = profile_sections(report_with_profiles().model_copy(update={"profiles": profiles}))
    inner = [each for block in made.blocks if isinstance(block, Fold) for each in block.blocks]
    assert not [each for each in inner if isinstance(each, Heat)]


def test_the_page_is_well_formed_and_links_the_files() -> None:
    html = RENDERERS["html"](report_with_profiles()).decode()
    parsed = section(html, "profiles")
    assert parsed.open == []
    links = [attributes["href"] for tag, attributes in parsed.tags if tag == "a"]
    assert "profiles/0100.cpu.jfr" in links
    assert all("style" not in attributes for _, attributes in parsed.tags)
    assert len(page(report_with_profiles()).raw["script"]) == 10


def test_the_data_of_flame_graphs_are_trees_that_share_their_frames() -> None:
    flames = data(page(report_with_profiles()))["profiles"]
    assert json.loads(json.dumps(profiles_payload(report_with_profiles()))) == flames
    assert len(set(flames["frames"])) == len(flames["frames"]) == len(flames["of"])
    for one, whole in zip(flames["profiles"], report_with_profiles().profiles, strict=True):
        assert len(one["nodes"]) == 4 * len(whole.graph.nodes)
        first = [whole for at, whole in enumerate(one["nodes"]) if at % 4 == 2 and one["nodes"][at - 2] == 0]
        assert sum(first) == one["total"] == whole.graph.total
    held = [
        (one["name"], flames["profiles"][one["against"]]) for one in flames["profiles"] if one["against"] is not None
    ]
    assert [(name, other["name"]) for name, other in held] == [
        ("http4s.vanilla", "http4s.vanilla"),
        ("http4s.tapir", "http4s.vanilla"),
        ("http4s.tapir", "http4s.vanilla"),
    ], "against the baseline, else against the lowest rate"


def test_a_report_without_profiles_has_no_section_and_no_script() -> None:
    assert list(profile_sections(healthy())) == []
    assert profiles_payload(healthy()) is None
    assert len(page(healthy()).raw["script"]) == 8
    assert "profiles" not in healthy().model_dump(mode="json")


def test_a_profile_that_failed_says_why_and_has_no_graph() -> None:
    broken, *sound = report_with_profiles().profiles
    one = broken.model_copy(update={"problem": "perf is not there", "libraries": (), "change": None})
    report = report_with_profiles().model_copy(update={"profiles": (one, *sound)})
    assert "http4s.vanilla has no profile: perf is not there." in shown(report)
    assert "has no profile: perf is not there." in page(report).text
    assert len(profiles_payload(report)["profiles"]) == 3  # type: ignore[index]
    alone = report_with_profiles().model_copy(update={"profiles": (one,)})
    assert profiles_payload(alone) is None
    assert "perf is not there" in page(alone).text


def test_spreadsheets_have_a_row_for_each_library() -> None:
    rows = RENDERERS["csv"](report_with_profiles()).decode().splitlines()
    assert sum("cpu-share:tapir's interpreter," in row for row in rows) == 2
    assert sum("cpu-share:http4s," in row for row in rows) == 4


def test_a_heat_map_is_few_paths() -> None:
    made = heat_map(
        Heat(
            "t", "l", (("a", (0, 3, 3, 5)), ("b", (5, 5, 5, 5))), (100, None, 1000, 10), (False, True, True, False), ""
        )
    )
    assert dict(made.levels) == {3: "M1 44H3v21H1z", 5: "M3 44H4v21H3zM0 66H4v21H0z"}
    assert made.curve == "M0 22.0H1M2 6.0H3L3 38.0H4"
    assert made.marks == "M1 90h1v4h-1zM2 90h1v4h-1z"


def stored(folder: Path, table: str = "") -> RunStore:
    """A run in a directory whose cells have profiles; with a table of libraries in their catalogue."""
    run = simulated_run({"a.server": GOOD}, loads=(SATURATE,), ceiling=None, baseline=None, trials=2)
    plan = run.manifest.plan
    (cell,) = plan.cells.values()
    entry = cell.variant.catalogued.model_copy(update={"family_folder": str(folder / "catalogue" / "a")})
    variant = cell.variant.model_copy(update={"entry": entry})
    extra = PlannedTrial(cell_id=cell.id, round=0, position=2, seed=1, profile="cpu")
    suite = plan.suite.model_copy(update={"variants": (variant,)})
    reason = Skipped(slug="a.server: alloc", reason="only cpu can be profiled", cause="suite")
    changed = plan.model_copy(update={"suite": suite, "profiled": (extra,), "unprofiled": (reason,)})
    store = RunStore(folder / "run")
    store.create(run.manifest.model_copy(update={"plan": changed}))
    for recording in run.recordings:
        store.save(recording, cell)
    one = profiled(simulated_recording(cell, GOOD, position=2))
    assert one.traffic is not None
    store.save(one, cell, profiled=True)
    (folder / "run" / "profiles" / "0002.cpu.stacks.gz").write_bytes(
        stacks_of(VANILLA, one.traffic.window_unix_ns).to_bytes()
    )
    (folder / "catalogue").mkdir()
    if table:
        (folder / "catalogue" / "libraries.yaml").write_text(table, encoding="utf-8")
    return store


def test_a_stored_run_is_reported_with_its_profiles(tmp_path: Path) -> None:
    report = build_report(stored(tmp_path).run())
    (one,) = report.profiles
    assert one.libraries[0].name == "http4s"
    assert one.positions == (2,)
    assert "Not profiled: a.server: alloc: only cpu can be profiled." in shown(report)
    assert "Not profiled: a.server: alloc" in page(report).text


def test_the_table_of_the_servers_catalogue_counts(tmp_path: Path) -> None:
    report = build_report(stored(tmp_path, "libraries: [{name: my http, packages: [org.http4s]}]").run())
    assert report.profiles[0].libraries[0].name == "my http"


def test_a_run_whose_stacks_are_gone_or_damaged_says_so(tmp_path: Path) -> None:
    store = stored(tmp_path)
    file = tmp_path / "run" / "profiles" / "0002.cpu.stacks.gz"
    file.write_bytes(file.read_bytes()[:50])
    assert "is not gzip'd text" in build_report(store.run()).profiles[0].problem
    file.unlink()
    assert "No such file" in build_report(store.run()).profiles[0].problem
