"""Bodies in gzip, deflate, br and zstd: decoded, and what is wrong with them named."""

import contextlib
import gzip
import sys
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.driving.encodings import EncodingError, codings_of, decoded
from redline.errors import UsageError

BODY = b'{"total": 3}' * 50
ENCODED = {
    "gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
    "br": bytes(cramjam.brotli.compress(BODY)),
    "zstd": bytes(cramjam.zstd.compress(BODY)),
}


def test_codings_are_undone_from_the_last() -> None:
    twice = gzip.compress(ENCODED["br"])
    assert decoded(twice, codings_of("br, identity, X-GZIP")) == BODY
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    assert decoded(raw.compress(BODY) + raw.flush(), ("deflate",)) == BODY
    assert decoded(ENCODED["gzip"] * 2, ("gzip",)) == BODY * 2


@pytest.mark.parametrize("coding", ENCODED)
def test_what_is_not_whole_is_an_error(coding: str) -> None:
    body = ENCODED[coding]
    assert decoded(body, (coding,)) == BODY
    for wrong in (body[:-5], body[: len(body) // 2], BODY):
        with pytest.raises(EncodingError):
            decoded(wrong, (coding,))


def test_a_coding_that_is_not_known_is_named() -> None:
    with pytest.raises(EncodingError, match="`compress` is not known here"):
        decoded(BODY, ("compress",))


def test_what_needs_a_library_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert decoded(ENCODED["gzip"], ("gzip",)) == BODY
    with pytest.raises(UsageError, match="without the extra `encodings`") as caught:
        decoded(ENCODED["br"], ("br",))
    assert "cramjam" in caught.value.hint


@given(st.binary(max_size=300), st.sampled_from(sorted(ENCODED)))
def test_any_bytes_are_decoded_or_refused(body: bytes, coding: str) -> None:
    with contextlib.suppress(EncodingError):
        decoded(body, (coding,))
