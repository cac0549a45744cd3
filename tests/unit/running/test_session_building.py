"""A resumed run never mixes builds, engines or machines."""

from dataclasses import replace

import pytest

from redline.errors import BuildError, RedlineError
from redline.model import HopFacts, Run
from redline.ports import BuildOutcome
from redline.running.session import refuse_changed
from tests.fakes.recordings import simulated_run

RUN = simulated_run(trials=2, done=3)
SAME = {cell.variant.slug: "" for cell in RUN.manifest.plan.cells.values()}


def built(run: Run) -> BuildOutcome:
    """The build, engine and machine in the recordings."""
    hashes = {
        run.manifest.plan.cells[recording.cell_id].variant.slug: recording.server.build
        for recording in run.recordings
        if recording.server
    }
    return BuildOutcome(hashes={**SAME, **hashes})


def test_the_same_build_is_accepted() -> None:
    refuse_changed(built(RUN), RUN, RUN.manifest.environment)


def test_another_build_is_refused() -> None:
    changed = BuildOutcome(hashes=dict.fromkeys(SAME, "another"))
    with pytest.raises(RedlineError, match="has changed since"):
        refuse_changed(changed, RUN, RUN.manifest.environment)


def test_the_same_runtime_is_accepted() -> None:
    same = replace(built(RUN), runtimes=dict.fromkeys(SAME, "simulated 1.0"))
    refuse_changed(same, RUN, RUN.manifest.environment)


def test_another_runtime_is_refused() -> None:
    slug = next(iter(SAME))
    changed = replace(built(RUN), runtimes={slug: "simulated 1.1"})
    with pytest.raises(RedlineError) as caught:
        refuse_changed(changed, RUN, RUN.manifest.environment)
    assert caught.value.problems[0].message == f"{slug} ran on simulated 1.0; now it would run on simulated 1.1"
    assert caught.value.hint == "put simulated 1.0 back, or start a new run: trials of one run must be of one build"


def test_another_build_of_a_proxy_is_refused() -> None:
    first = RUN.recordings[0]
    assert first.server is not None
    process = first.server.model_copy(update={"build": "of the proxy"})
    hop = HopFacts(name="proxy.front", process=process, upstream="h1")
    server = first.server.model_copy(update={"hops": (hop,)})
    routed = RUN.model_copy(update={"recordings": (first.model_copy(update={"server": server}),)})
    same = replace(built(RUN), hashes={**built(RUN).hashes, "proxy.front": "of the proxy"})
    refuse_changed(same, routed, RUN.manifest.environment)
    with pytest.raises(RedlineError, match=r"proxy\.front has changed since this run began"):
        refuse_changed(built(RUN), routed, RUN.manifest.environment)


def test_why_it_cannot_be_built_is_reported_before_that_it_is_not_what_it_was() -> None:
    lost = next(iter(SAME))
    with pytest.raises(RedlineError, match="there is no JDK 17"):
        refuse_changed(
            BuildOutcome(failures={lost: BuildError("there is no JDK 17", hint="")}), RUN, RUN.manifest.environment
        )


def test_a_server_that_cannot_be_built_any_more_is_refused() -> None:
    with pytest.raises(RedlineError, match="no compiler"):
        refuse_changed(
            BuildOutcome(built(RUN).hashes, {"rust.axum": BuildError("no compiler", hint="")}),
            RUN,
            RUN.manifest.environment,
        )


@pytest.mark.parametrize(
    ("field", "value"), [("engine_sha256", "0" * 64), ("hostname", "elsewhere"), ("cores", 99), ("server_cpus", (7,))]
)
def test_another_engine_or_machine_is_refused(field: str, value: object) -> None:
    environment = RUN.manifest.environment.model_copy(update={field: value})
    with pytest.raises(RedlineError, match=field.replace("_", " ")):
        refuse_changed(built(RUN), RUN, environment)
