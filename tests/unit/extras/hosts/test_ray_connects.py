"""How the lab connects to a cluster: with a fake Ray of a few lines, so that none has to be installed."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from redline.errors import UsageError
from redline.extras.hosts import ray_cluster

EXCEPTIONS = """
class RayError(Exception): pass
class GetTimeoutError(RayError, TimeoutError): pass
class AuthenticationError(RayError): pass
"""
RAY = """
import os
from ray.exceptions import AuthenticationError, GetTimeoutError, RayError
WHEN_IMPORTED = os.environ.get("RAY_AUTH_MODE"), os.environ.get("RAY_USAGE_STATS_ENABLED")
FAULT, ENDED = None, []
def init(**settings):
    os.write(2, b"gcs_client.cc:210: tries again\\n")
    if FAULT == "other token":
        os.write(2, b"Unauthenticated: RPC error: InvalidAuthToken\\n")
        raise ConnectionError("Failed to connect\\nmore")
    if FAULT == "no token":
        raise AuthenticationError("no authentication token was found")
    if FAULT == "gone":
        raise ConnectionError("Failed to connect\\nmore")
def remote(function):
    return type("Remote", (), {"options": lambda self, **_: self, "remote": lambda self: function})()
def get(function, timeout):
    if FAULT == "busy":
        raise GetTimeoutError("not in time")
    if FAULT == "without redline":
        raise RayError("ray::f()\\nModuleNotFoundError: No module named 'redline'")
    return ("disabled" if FAULT == "open" else "token"), "host-7"
def shutdown():
    ENDED.append(True)
"""


def of_ray() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "ray"]


@pytest.fixture
def ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that `import ray` loads when the lab connects."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "exceptions.py").write_text(EXCEPTIONS)
    (tmp_path / "ray" / "__init__.py").write_text(RAY)
    for name in of_ray():
        monkeypatch.delitem(sys.modules, name)  # it may be installed
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ray_cluster, "_refuse_silent", lambda _address: None)
    with ray_cluster._cluster("auto") as found:
        assert isinstance(found, ModuleType)
    yield found
    for name in of_ray():
        del sys.modules[name]


def test_what_ray_reads_when_it_is_imported_is_set_before(ray: ModuleType) -> None:
    assert ray.WHEN_IMPORTED == ("token", "0")
    assert ray.ENDED == [True]


@pytest.mark.parametrize(
    ("fault", "says", "hint"),
    [
        ("no token", "this machine has no token for Ray", "ray get-auth-token --generate"),
        ("other token", "the cluster at auto has another token than this machine", "~/.ray/auth_token"),
        ("gone", "no Ray cluster could be reached at auto: Failed to connect", "ray start"),
        ("open", "host-7 runs Ray without authentication: whoever reaches it can run commands", "RAY_AUTH_MODE=token"),
        ("busy", "no host of the cluster started a process within 60 s", "ray status"),
        ("without redline", "a host of the cluster cannot run Redline: ModuleNotFoundError", "uv sync --extra ray"),
    ],
)
def test_what_is_in_the_way_is_one_message(
    ray: ModuleType, fault: str, says: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ray.FAULT = fault  # type: ignore[attr-defined]
    with pytest.raises(UsageError) as caught, ray_cluster._cluster("auto"):
        pass
    assert caught.value.message.startswith(says)
    assert "\n" not in caught.value.message
    assert hint in caught.value.hint
    assert capfd.readouterr().err == ""
    os.write(2, b"as before")
    assert capfd.readouterr().err == "as before"
