"""Bodies in chunks, as the engine sent them and as the oracle read them: to the byte."""

from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Closed, Expected, Load, Open, Request, Scenario
from redline.model.catalogue import HttpVersion
from redline.model.exchange import Body

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

SECOND = 1_000_000_000
COUNT = 400
SHAPES = {
    "closed": Closed(users=3),
    "pipelined": Closed(users=2, depth=4),
    "open": Open(rate_per_s=800, arrivals="poisson", connections=16),
}
BODIES = {
    "empty": Body(text="", chunked=True),
    "single": Body(size=100_000, chunked=True),
    "pieces": Body(size=20_000, chunked=4096),
    "varying": Body(text="{rand:1000..9999}" + "x" * 300, chunked=7),
}
BYTES = {"empty": 0, "single": 100_000, "pieces": 20_000, "varying": 304}


def upload(name: str, body: Body) -> Request:
    """The oracle answers with the name and the bytes of the body that it read."""
    answer = f"{name} {BYTES[name]}"
    return Request(
        name=name, method="POST", path=f"/{name}", body=body, expect=Expected(body=answer, under_load="hash")
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_bodies_in_chunks_arrive_to_the_byte(oracle: Path, http: HttpVersion, shape: str) -> None:
    requests = tuple(upload(name, body) for name, body in BODIES.items())
    uploads = Scenario(name="Uploads", request=requests[0], others=requests[1:])
    load = Load(name=shape, shape=SHAPES[shape], duration_ns=20 * SECOND, count=COUNT)
    with running(oracle, "null", "--close-after", "50", "--report") as server:
        traffic = drive(server, load, AskedOf(uploads, http), warmup_ns=0)
    seen, counts = server.seen, traffic.counts
    assert seen is not None
    assert counts.due == counts.outcomes.ok == seen.requests == COUNT
    assert seen.statuses == {"200": COUNT}
    said = {request.name: part.outcomes.ok for request, part in zip(requests, traffic.requests, strict=True)}
    assert said == seen.targets
    assert set(said) == set(BODIES)
    assert seen.body_bytes == sum(said[name] * length for name, length in BYTES.items())
