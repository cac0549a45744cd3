"""Numbers in stored files that no measurement gives are named; looking for them costs little."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from redline.model.run import Kind
from redline.storage import reading
from redline.storage.reading import too_large
from tests.fakes.recordings import simulated_run
from tests.fakes.stored import kept

LIMIT = 1 << 63
NUMBERS = st.one_of(
    st.integers(-(10**25), 10**25),
    st.integers(LIMIT - 10**6, LIMIT + 10**6),
    st.integers(1_700_000_000 * 10**9, 1_900_000_000 * 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
)
STORED = st.recursive(
    NUMBERS | st.text("0123456789eE+/=", max_size=60) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=4),
)


def is_large(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(is_large, value.values()))
    if isinstance(value, list):
        return any(map(is_large, value))
    return isinstance(value, int | float) and abs(value) >= LIMIT


@given(STORED, st.sampled_from([None, 1]))
def test_a_number_too_large_is_seen_wherever_it_stands(value: object, indent: int | None) -> None:
    content = json.dumps(value, indent=indent).encode()
    assert bool(too_large(content)) == is_large(value)


@pytest.mark.parametrize(
    "text",
    [
        b"9223372036854775808",
        b"-9223372036854775808",
        b"1e19",
        b"1E+19",
        b"9.3e18",
        b"99999999999e9",
        b"92233720368547758080",
        b"1e400",
    ],
)
def test_every_way_to_write_it(text: bytes) -> None:
    for content in (text, b"[" + text + b"]", b'{"a": ' + text + b"}", b'{"a": ' + text + b', "b": 1}', text + b"\n"):
        assert "is larger than any measurement" in too_large(content), content


def test_it_is_named_with_its_place() -> None:
    assert too_large(b'{"a": [1, {"b": 1e30}]}') == "a.1.b: 1e+30 is larger than any measurement"
    assert too_large(b"1e30") == "the file: 1e+30 is larger than any measurement"


def test_a_file_without_one_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recording has times in nanoseconds and base64, which are no reason to look at its every value."""
    monkeypatch.setattr(reading, "from_json", lambda _content: pytest.fail("walked through"))
    content = {"started_unix_ns": 1_790_001_554_000_000_000, "response": "XMlBWlGdWG+mE+12/9299999999", "share": 1e-12}
    assert too_large(json.dumps(content, indent=1).encode()) == ""
    assert from_json("1") == 1


@pytest.mark.parametrize("content", ["", "{", "{}", "another"])
@pytest.mark.parametrize(
    ("kind", "folder", "says"),
    [
        ("run", "a b", "move it away, and --resume makes it again"),
        ("run", "a b/capacity", "move it away, and redline run --resume '{}' makes it again"),
        ("load", "a b", "make the load again"),
    ],
)
def test_what_makes_a_damaged_recording_again(tmp_path: Path, kind: Kind, folder: str, says: str, content: str) -> None:
    run = simulated_run(trials=1)
    store = kept(tmp_path / folder, run.model_copy(update={"manifest": run.manifest.model_copy(update={"kind": kind})}))
    file, other, *_ = store.recording_files().values()
    file.write_text(other.read_text() if content == "another" else content)
    failure = store.run().recordings[0].failure
    assert failure is not None
    assert failure.hint.endswith(says.format(store.folder))
