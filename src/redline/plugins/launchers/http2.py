"""One request in HTTP/2, for servers that do not answer in HTTP/1.1: RFC 9113, and of RFC 7541 what a status needs."""

import socket

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 1, 3, 4, 7
_ACK, _END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_STREAM = 1
_LARGEST = 1 << 20
_STATUS = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
"""By its index in the static table."""
_DIGITS = {
    **{f"{digit:05b}": str(digit) for digit in range(3)},
    **{f"{22 + digit:06b}": str(digit) for digit in range(3, 10)},
}
"""The digits by their Huffman codes."""


def status(connection: socket.socket, authority: str, path: str, *, tls: bool) -> int | str:
    """The status of `GET path`, or why there is none. Raises OSError."""
    block = b"\x82" + (b"\x87" if tls else b"\x86") + b"\x04" + _text(path) + b"\x01" + _text(authority)
    headers = _frame(_HEADERS, _END_STREAM | _END_HEADERS, _STREAM, block)
    connection.sendall(PREFACE + _frame(_SETTINGS, 0, 0) + headers)
    received = b""
    while True:
        while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3]):
            more = connection.recv(1 << 16)
            if not more or len(received) > _LARGEST:
                return f"no answer in HTTP/2 but {received[:60]!r}"
            received += more
            if received.startswith(b"HTTP/1"):
                return f"no answer in HTTP/2 but {received[:60]!r}"
        length, kind, flags = int.from_bytes(received[:3]), received[3], received[4]
        stream, payload, received = int.from_bytes(received[5:9]), received[9 : 9 + length], received[9 + length :]
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0))
        elif kind == _GOAWAY or (kind == _RST_STREAM and stream == _STREAM):
            return "the request was refused in HTTP/2"
        elif kind == _HEADERS and stream == _STREAM:
            return read_status(_without_padding(payload, flags))


def read_status(block: bytes) -> int | str:
    """The status of a response's header block: it is the first field."""
    while block and block[0] & 0xE0 == 0x20:  # the size of the dynamic table changes: an integer of 5 bits or more
        rest = block[1:] if block[0] & 0x1F == 0x1F else b""
        block = rest.lstrip(bytes(range(0x80, 0x100)))[1:] if rest else block[1:]
    if block and block[0] & 0x80 and block[0] & 0x7F in _STATUS:
        return _STATUS[block[0] & 0x7F]
    # A literal whose name is `:status`, indexed anew (6 bits) or not (4 bits).
    if len(block) > 1 and (block[0] & 0x3F if block[0] & 0x40 else block[0] & 0x0F) in _STATUS:
        value = block[2 : 2 + (block[1] & 0x7F)]
        digits = _decoded(value) if block[1] & 0x80 else value.decode("latin-1")
        if digits.isdecimal():
            return int(digits)
    return f"no status in the HTTP/2 header {block[:20]!r}"


def _decoded(value: bytes) -> str:
    """A number in Huffman codes; what is left at the end is padding."""
    bits, digits = "".join(f"{byte:08b}" for byte in value), ""
    while (length := next((n for n in (5, 6) if bits[:n] in _DIGITS), 0)) and len(bits) >= length:
        digits, bits = digits + _DIGITS[bits[:length]], bits[length:]
    return digits


def _without_padding(payload: bytes, flags: int) -> bytes:
    if flags & _PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if flags & _PRIORITY else payload


def _text(value: str) -> bytes:
    """A string without Huffman codes; its length is an integer with a prefix of 7 bits."""
    data, length = value.encode(), len(value.encode())
    if length < 0x7F:
        return bytes([length]) + data
    head, rest = b"\x7f", length - 0x7F
    while rest >= 0x80:
        head, rest = head + bytes([rest & 0x7F | 0x80]), rest >> 7
    return head + bytes([rest]) + data


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload
