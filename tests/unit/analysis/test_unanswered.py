"""Why a comparison within a budget has no answer."""

from redline.analysis import build_report
from redline.analysis.unanswered import nothing_due, start_failed, unanswered
from redline.model import DuetRecording, Failure, Run
from redline.model.catalogue import Checkout, Revision
from redline.suite import Catalogue, make_plan
from redline.suite.project import Origins, Project, read_project
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.resolve import read_suite
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import simulated_run

REST = "loads: {load: {closed: {users: 2}}}\nbudget: 9s\n"
COMMANDS = (
    "servers: [{name: A, command: './a {port}'}, {name: B, command: './b {port}'}]\nscenarios: [{name: one, get: /}]\n"
)
REVISIONS = "servers: [{name: A, revision: v1}, {name: B, revision: main}]\n"
DIED = Failure(stage="load", kind="died", message="B ended: out", hint="see its log", log_tail="why\nout")


def checkout(name: str) -> Checkout:
    return Checkout(repository="/r", revision=Revision(name=name, commit=f"{name:0<9}"), build=None, below=".")


def project() -> Project:
    return read_project("start: ./a {port}\n", "redline.yaml")


def run_of(servers: str = COMMANDS, *duets: DuetRecording) -> Run:
    suite = read_suite(servers + REST, "mine.yaml", Catalogue(), Overrides(), origins=Origins(checkout, project))
    plan = make_plan(suite)
    ids = plan.duets[0].cell_ids
    made = tuple(duet.model_copy(update={"cell_ids": (*ids, ids[0])}) for duet in duets)
    manifest = simulated_run(trials=1).manifest.model_copy(update={"plan": plan})
    return Run(manifest=manifest, recordings=(), duets=made)


def idle(target: int) -> DuetRecording:
    """A start in which a server got no request."""
    made = simulated_duet(0)
    assert made.traffic is not None
    blocks = tuple(
        block.model_copy(
            update={
                "slices": tuple(
                    each.model_copy(update={"completed": 0, "measured": 0}) if each.target == target else each
                    for each in block.slices
                )
            }
        )
        for block in made.traffic.blocks
    )
    return made.model_copy(update={"traffic": made.traffic.model_copy(update={"blocks": blocks})})


def test_the_end_of_a_log_stands_in_the_message_once() -> None:
    error = start_failed(run_of(), DIED)
    assert error.message == "B ended: out\n    why"
    assert error.hint == "see its log"


def test_revisions_are_told_apart() -> None:
    error = start_failed(run_of(REVISIONS), DIED)
    assert error.hint.startswith("A: v1 (v10000000), B: main (main00000); ")


def test_what_can_be_compared_is_answered() -> None:
    run = run_of(COMMANDS, *(simulated_duet(number) for number in range(3)))
    assert unanswered(run, build_report(run)) is None


def test_a_load_without_requests_is_named() -> None:
    run = run_of(COMMANDS, idle(1))
    error = unanswered(run, build_report(run))
    assert error is not None
    assert error.message.startswith("nothing fell due to one of the servers in ")
    assert nothing_due([simulated_duet(0)]) == ""


def test_too_little_is_said_plainly() -> None:
    run = run_of(COMMANDS)
    error = unanswered(run, build_report(run))
    assert error is not None
    assert error.message == "not enough data to compare CPU per request"
