"""A report names the hosts on which its trials ran."""

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.errors import RedlineError
from redline.model import Role, UsedHost
from redline.render import RENDERERS, summary, terminal
from redline.running.session import refuse_other_hosts
from tests.fakes.recordings import SATURATE, simulated_run

RUN = simulated_run(trials=2, loads=(SATURATE,), ceiling=None)


def host(name: str, role: Role) -> UsedHost:
    return UsedHost(name=name, role=role, address="10.0.0.7", environment=RUN.manifest.environment)


HOSTS = (host("server-0", "server"), host("load-0", "load"))


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_hosts_are_named(form: str) -> None:
    manifest = RUN.manifest.model_copy(update={"hosts": HOSTS})
    placed = RENDERERS[form](build_report(RUN.model_copy(update={"manifest": manifest}))).decode()
    alone = RENDERERS[form](build_report(RUN)).decode()
    for name in ("server-0", "load-0", "10.0.0.7"):
        assert name in placed
        assert name not in alone


def test_a_terminal_names_them_too() -> None:
    manifest = RUN.manifest.model_copy(update={"hosts": HOSTS})
    report = build_report(RUN.model_copy(update={"manifest": manifest}))
    assert "load-0 load, 10.0.0.7" in terminal.render(summary(report), Console(width=100)).plain


def test_a_run_is_resumed_on_its_own_hosts() -> None:
    refuse_other_hosts(HOSTS, HOSTS[::-1])
    refuse_other_hosts((), ())
    with pytest.raises(RedlineError, match="hosts of a cluster") as caught:
        refuse_other_hosts(HOSTS, ())
    assert "--on" in caught.value.hint
    with pytest.raises(RedlineError, match="other hosts: load-1"):
        refuse_other_hosts(HOSTS, (*HOSTS, host("load-1", "load")))
