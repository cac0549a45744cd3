"""How a server of the user's is called in reports: as the user wrote it."""

import pytest

from redline.analysis.own_servers import own_server
from redline.suite import Catalogue, read_suite
from redline.suite.loading import AS_WRITTEN

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
