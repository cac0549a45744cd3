"""The display while servers are built and trials run, and the reports afterwards."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from redline.cli.build_view import BuildView
from redline.cli.commands.build import build_result, matching
from redline.cli.session_view import SessionView, TrialsView
from redline.errors import BuildError, UsageError
from redline.model import Build, ServerEntry, Start
from redline.ports import Building, BuildOutcome
from redline.running.session import build_all
from tests.fakes.behaviour import GOOD
from tests.fakes.plugins import FakeLauncher
from tests.fakes.profiles import profiled_start
from tests.fakes.recordings import simulated_recording, simulated_run
from tests.fakes.screens import FakeTerminal

NAMES = ("http4s.ember", "http4s.blaze", "netty.tapir", "rust.axum")
SUITE = simulated_run().manifest.plan.suite


def entry(name: str) -> ServerEntry:
    build = Build(run=("true",), inputs=("in",), outputs=("out",))
    start = Start(command=("out", "{port}"))
    return ServerEntry(name=name, about="", runtime="jvm", family_folder="family", build=build, start=start)


SERVERS = {name: entry(name) for name in NAMES}


def names(*globs: str) -> list[str]:
    return list(matching(NAMES, globs))


def test_servers_are_chosen_by_globs_and_all_without() -> None:
    assert names() == list(NAMES)
    assert names("http4s.*") == names("http4s") == ["http4s.ember", "http4s.blaze"]
    assert names("rust.axum", "*.tapir") == ["netty.tapir", "rust.axum"]


@pytest.mark.parametrize(
    ("glob", "hint"),
    [
        ("http4s.embr", "did you mean `http4s.ember`?"),
        ("htp4s", "did you mean `http4s`?"),
        ("xyz", "the catalogue has the families http4s, netty, rust"),
    ],
)
def test_a_glob_that_matches_nothing_is_refused(glob: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no server of the catalogue matches") as caught:
        matching(NAMES, ("netty.*", glob))
    assert [problem.hint for problem in caught.value.problems] == [hint]


def test_every_glob_that_matches_nothing_is_reported() -> None:
    with pytest.raises(UsageError) as caught:
        matching(NAMES, ("xyz", "http4s.*", "zyx"))
    assert len(caught.value.problems) == 2


def test_what_was_built_what_stood_and_what_failed() -> None:
    outcome = BuildOutcome(
        hashes={"http4s.ember": "1", "rust.axum": "2"},
        failures={
            "http4s.blaze": BuildError("building http4s.blaze failed: not resolved", hint="see the log"),
            "netty.tapir": BuildError("netty.tapir cannot be used here: java is not installed", hint="install a JDK"),
        },
        took_ns={"http4s.ember": 5, "http4s.blaze": 5},
    )
    servers = build_result(tuple(SERVERS.values()), outcome).servers
    assert [(server.state, server.hash, server.took_ns) for server in servers] == [
        ("built", "1", 5),
        ("failed", None, 5),
        ("failed", None, None),
        ("stood", "2", None),
    ]
    assert servers[1].reason == "building http4s.blaze failed: not resolved"
    assert servers[2].hint == "install a JDK"


def shown(*buildings: Building, terminal: bool) -> str:
    file = io.StringIO()
    file.isatty = lambda: terminal  # type: ignore[method-assign]
    console = Console(file=file, force_terminal=terminal, width=60, color_system=None)
    with BuildView(console) as view:
        for building in buildings:
            view(building)
        view._bar.refresh() if terminal else None
    return file.getvalue()


def test_without_a_terminal_each_command_is_reported_in_a_line() -> None:
    output = shown(
        Building(NAMES[:2]),
        Building(NAMES[:2], "compiling"),
        Building(NAMES[2:3]),
        Building(NAMES[2:3], "done"),
        terminal=False,
    )
    assert output == "building http4s.ember, http4s.blaze\nbuilding netty.tapir\n"


def test_on_a_terminal_the_last_line_is_shown_whatever_it_holds() -> None:
    output = shown(Building(NAMES), Building(NAMES, "[info] [/b]\x1b]0;x\x07 compiling"), terminal=True)
    assert "building http4s.ember, http4s.blaze, netty.tapir, rust.axum" in output
    assert "building http4s.ember and 3 more: [info] " in output
    one = shown(Building(NAMES[:1], "[info] [/b]\x07 x"), terminal=True)
    assert "building http4s.ember: [info] [/b] x" in one
    assert "0:00:00" in one


class LauncherThatBuildsNothing(FakeLauncher):
    """Every build fails for the same reason."""

    def build(self, variants: object, progress: object, builds: int = 1) -> BuildOutcome:
        return BuildOutcome(
            failures={
                variant.slug: BuildError("no [red]compiler", hint="install one")
                for variant in variants  # type: ignore[attr-defined]
            }
        )


def test_a_run_builds_each_variant_and_keeps_why_it_could_not() -> None:
    slugs = {variant.slug for variant in SUITE.variants} | ({SUITE.ceiling.slug} if SUITE.ceiling else set())
    file = io.StringIO()
    console = Console(file=file, width=500)
    assert set(build_all(SUITE, FakeLauncher([]), SessionView(console)).hashes) == slugs
    only = SUITE.variants[0].slug
    assert set(build_all(SUITE, FakeLauncher([]), SessionView(console), only={only}).hashes) == {only}
    assert file.getvalue() == ""
    failed = build_all(SUITE, LauncherThatBuildsNothing([]), SessionView(console))
    assert failed.unavailable == dict.fromkeys(slugs, "no [red]compiler")
    assert file.getvalue().count("no [red]compiler") == 1
    assert all(slug in file.getvalue() for slug in slugs)


def test_a_trial_with_a_profiler_is_named_as_one_and_that_it_perturbs_is_no_news() -> None:
    run = simulated_run()
    cell = next(iter(run.manifest.plan.cells.values()))
    out = io.StringIO()
    TrialsView(run.manifest.plan, 0, Console(file=out, width=120)).trial_ended(profiled_start(cell), cell)
    (line,) = out.getvalue().splitlines()
    assert line.endswith("profiled: cpu")


def test_a_profile_that_could_not_be_made_is_reported_at_once() -> None:
    run = simulated_run()
    cell = next(iter(run.manifest.plan.cells.values()))
    one, terminal = profiled_start(cell), FakeTerminal(120)
    assert one.profile is not None
    failed = one.model_copy(update={"profile": one.profile.model_copy(update={"problem": "the JVM did not load it"})})
    TrialsView(run.manifest.plan, 0, terminal.console).trial_ended(failed, cell)
    assert any("there is no profile: the JVM did not load it" in line for line in terminal.shown)


def test_what_the_machine_did_is_said_once_in_a_run_and_what_a_server_did_once_for_each_cell() -> None:
    run = simulated_run()
    cells = tuple(run.manifest.plan.cells.values())[:2]
    terminal, disturbed = FakeTerminal(200, 60), replace(GOOD, steal=0.4, outcomes={"unexpected_body": 1})
    view = TrialsView(run.manifest.plan, 0, terminal.console)
    for cell in (*cells, *cells):
        view.trial_ended(simulated_recording(cell, disturbed), cell)
    said = "\n".join(terminal.shown)
    assert said.count("The host took away") == 1
    assert said.count("cpu-steal, as before") == 1, "a trial without news is not printed"
    assert said.count("unexpected body") == len(cells)
