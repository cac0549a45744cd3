"""Functions as a report names them."""

import pytest

from redline.model import CodeCost, Estimate
from redline.report.why import name_of


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("io.netty.handler.codec.http.HttpObjectEncoder.writeOutList", "HttpObjectEncoder.writeOutList"),
        ("java.lang.invoke.VarHandleLongs$FieldInstanceReadWrite.get", "VarHandleLongs$FieldInstanceReadWrite.get"),
        ("Petstore.serve", "Petstore.serve"),
        ("serde_json::ser::to_string", "serde_json::ser::to_string"),
        ("net/http.(*conn).serve", "net/http.(*conn).serve"),
        ("uvicorn.protocols.http.run", "uvicorn.protocols.http.run"),
        ("tcp_sendmsg_[k]", "tcp_sendmsg (kernel)"),
    ],
)
def test_a_function_is_named_without_the_packages_of_its_class(name: str, shown: str) -> None:
    difference = Estimate(value=1, low=0, high=2, unit="ns", n=8, method="t")
    cost = CodeCost(name=name, before_ns=1, after_ns=2, difference_ns=difference, p_adjusted=0.01)
    assert name_of(cost) == shown
