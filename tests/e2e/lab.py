"""A small project of a user: a catalogue with good and bad servers, and a suite over them."""

import sys
from pathlib import Path

SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "server.py"
BUILD = "build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}"

SUITE = """\
servers: [{servers}]
{more}
scenarios: [{scenario}]
loads:
  saturate: {{closed: {{users: 4}}, for: 300ms}}
warmup: 50ms
timeout: 500ms
trials: {trials}
"""

_ON_HOSTS = """\
servers: [good.one]
scenarios: [SimpleGet]
loads:
%swarmup: 100ms
trials: 2
hosts: {load: 2}
"""
_SATURATE = "  saturate: {closed: {users: 8}, for: 500ms}\n"
_STEADY = "  steady: {open: {rate: 1000, arrivals: poisson, connections: 9}, for: 500ms}\n"
ON_HOSTS = _ON_HOSTS % (_SATURATE + _STEADY)
"""A suite for a server's host and two load hosts."""
SATURATE_ON_HOSTS, STEADY_ON_HOSTS = _ON_HOSTS % _SATURATE, _ON_HOSTS % _STEADY
"""The same with one of both loads, where the other shows nothing more."""

SCENARIOS = """\
scenarios:
  SimpleGet: {get: /path0, expect: {status: 200, body: path0}}
  Ok: {get: /, expect: {status: 200, body: ok}}
  WithToken: {get: /, headers: {Authorization: Bearer some}, expect: {status: 200, body: ok}}
  Wrong: {get: /path0, expect: {status: 200, body: something else}}
"""


class Lab:
    """The project's folder: `good.*` are `redline-oracle null`, `bad.X` has the habit X of the fake server."""

    def __init__(self, folder: Path, oracle: Path) -> None:
        self.folder = folder
        catalogue = folder / "catalogue"
        for family in ("good", "bad"):
            (catalogue / family).mkdir(parents=True)
        (catalogue / "scenarios.yaml").write_text(SCENARIOS)
        (catalogue / "good" / "server.yaml").write_text(_good(oracle))
        (catalogue / "bad" / "server.yaml").write_text(_bad())

    def suite(self, servers: str, *, scenario: str = "SimpleGet", trials: int = 2, more: str = "") -> Path:
        """Write a suite over these servers."""
        file = self.folder / "suite.yaml"
        file.write_text(SUITE.format(servers=servers, scenario=scenario, trials=trials, more=more))
        return file


def _good(oracle: Path) -> str:
    start = f"start: {{command: ['{oracle}', 'null', '--host', '{{host}}', '--port', '{{port}}']}}"
    return f"""\
about: what answers well
runtime: native
{BUILD}
ready: {{path: /path0, within: 10s}}
servers:
  one: {{about: one, {start}}}
  two: {{about: two, {start}}}
  unbuildable:
    about: its build fails
    build: {{run: [sh, -c, 'echo no such compiler >&2; exit 3'], inputs: [server.yaml], outputs: [nothing]}}
    {start}
  toolless:
    about: its tool is missing
    build:
      run: [no-such-tool]
      inputs: [server.yaml]
      outputs: [nothing]
      needs: [{{command: no-such-tool, hint: there is none}}]
    {start}
"""


def _bad() -> str:
    own = {"silent": ", ready: {path: /, within: 1500ms}"}  # the run waits for it in vain
    habits = ("exits", "silent", "wrong", "flooding", "dying", "crashes", "taken", "expires")
    servers = "\n".join(
        f"  {habit}: {{about: {habit}, start: {{command: ['{sys.executable}', '{SERVER}', '{{port}}', {habit}]}}"
        f"{own.get(habit, '')}}}"
        for habit in habits
    )
    return f"""\
about: what does not
runtime: python
{BUILD}
ready: {{path: /, within: 1500ms}}
stop: {{within: 1s}}
servers:
{servers}
"""
