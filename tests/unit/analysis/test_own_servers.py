"""The name of a user's server in reports: as the user wrote it."""

import pytest

from redline.analysis.own_servers import own_server, servers_said
from redline.errors import UsageError
from redline.suite import Catalogue, read_suite
from redline.suite.loading import AS_WRITTEN
from redline.suite.validate.overrides import Overrides

SUITE = """\
servers: [{{name: A, command: "{command}"}}, {{name: B, url: 'http://127.0.0.1:8080'}}]
scenarios: [{{name: root, get: /}}]
loads: {{load: {{closed: {{users: 1}}, for: 1s}}}}
"""


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("./old --port {port}", "./old --port {port}"),
        ("./old '--port={port}'", "./old --port={port}"),
        ("./old 'two words' '$HOME' {port}", "./old 'two words' '$HOME' {port}"),
    ],
)
def test_a_command_is_said_as_written_and_an_address_as_a_url(written: str, said: str) -> None:
    suite = read_suite(SUITE.format(command=written), "mine.yaml", Catalogue(servers={}, scenarios={}), AS_WRITTEN)
    command, address = suite.variants
    assert own_server(command) == said
    assert own_server(address) == "http://127.0.0.1:8080"
    assert own_server(address, "/items") == "http://127.0.0.1:8080/items"
    assert own_server(address, "/chat", opens_websocket=True) == "ws://127.0.0.1:8080/chat"


def test_servers_that_only_their_variables_tell_apart_have_those() -> None:
    text = """\
servers:
  - {name: one, command: './shop {port}', env: {GOMAXPROCS: '1', LOG: 'off'}}
  - {name: two, command: './shop {port}', env: {GOMAXPROCS: '2', LOG: 'off', TOKEN: '${T}'}}
  - {name: other, command: './other {port}', env: {GOGC: '50'}}
scenarios: [{name: root, get: /}]
loads: {load: {closed: {users: 1}, for: 1s}}
"""
    suite = read_suite(text, "mine.yaml", Catalogue(servers={}, scenarios={}), AS_WRITTEN)
    assert servers_said(suite.variants) == {
        "one": "GOMAXPROCS=1 ./shop {port}",
        "two": "GOMAXPROCS=2 TOKEN='${T}' ./shop {port}",
        "other": "./other {port}",
    }


def test_a_number_of_trials_is_refused_where_a_budget_sets_it() -> None:
    text = """\
servers: [{name: A, command: './old {port}'}, {name: B, command: './new {port}'}]
baseline: A
scenarios: [{name: root, get: /}]
loads: {load: {closed: {users: 1}}}
budget: 10s
"""
    with pytest.raises(UsageError, match="--trials sets the number of starts"):
        read_suite(text, "mine.yaml", Catalogue(servers={}, scenarios={}), Overrides(trials=1))
