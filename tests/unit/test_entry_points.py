"""What is no core: where it is absent, or lacks a package, it is refused by name."""

import sys

import pytest

from redline.entry_points import extra, missing_package
from redline.errors import UsageError


def test_what_lacks_a_package_is_refused_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("scipy", "redline.extras.selftest"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError) as refused:
        extra("selftest", "redline selftest")
    assert refused.value.message == "redline selftest needs the package scipy, which is not installed"
    assert refused.value.hint == "pip install 'redline[selftest]'; in a checkout: uv sync --extra selftest"


def test_what_no_package_brings_is_refused() -> None:
    with pytest.raises(UsageError, match="--teleport: this installation of Redline has no `teleport`"):
        extra("teleport", "--teleport")


def test_a_module_is_named_by_its_package() -> None:
    assert missing_package("--x", "pyarrow.parquet", "data").message.startswith("--x needs the package pyarrow,")
