"""The text of h2load, https://nghttp2.org."""

import re

from redline.extras.peers.outputs.reading import PeerOutput, reported, time_ns

_TIMES = re.compile(r"^time for request: +(.+)$", re.MULTILINE)
_HEADS = re.compile(r"^ +min +max +(.+)$", re.MULTILINE)
_COLUMNS = {"max": 1.0, "median": 0.5, "p95": 0.95, "p99": 0.99}
_REQUESTS = re.compile(
    r"requests: \d+ total, \d+ started, \d+ done, (\d{1,18}) succeeded, (\d{1,18}) failed, (\d{1,18}) errored"
)
_RATE = re.compile(r"finished in .*?, (\d{1,18}(?:\.\d+)?) req/s")
_TLS = re.compile(r"^(?:TLS Protocol|Cipher): (\S+)$", re.MULTILINE)
_CLIENTS = re.compile(r"spawning thread #\d+: (\d{1,9}) total client\(s\)\. (.+)")
_LASTS = re.compile(r"(\w+) of main duration")
_PROTOCOL = re.compile(r"^Application protocol: (\S+)$", re.MULTILINE)


def knows(text: str) -> bool:
    """Whether h2load printed it."""
    return "finished in " in text and _REQUESTS.search(text) is not None


def runs(text: str) -> int:
    """How many runs a text holds."""
    return len(_REQUESTS.findall(text))


def read(output: str) -> PeerOutput:
    """Read h2load's output: the largest time; later versions also print the median, p95 and p99."""
    heads, times = _HEADS.search(output), _TIMES.search(output)
    names = ["min", "max", *(heads[1].split() if heads else ())]
    pairs = zip(names, times[1].split() if times else (), strict=False)
    requests, rate = _REQUESTS.search(output), _RATE.search(output)
    right, failed, errored = map(int, requests.groups()) if requests else (None, 0, 0)
    return PeerOutput(
        reported({_COLUMNS[name]: time_ns(text) for name, text in pairs if name in _COLUMNS}),
        right,
        float(rate[1]) if rate else None,
        f"{failed} failed, {errored} errored" if failed + errored else "",
        " ".join(_TLS.findall(output)),
        failed=failed if requests else None,  # includes those that errored
        load=_load(output),
    )


def _load(output: str) -> str:
    """`16 clients, 2s, http/1.1`, or with `2000 requests` in place of the length."""
    threads = _CLIENTS.findall(output)
    if not threads:
        return ""
    lasts, protocol = _LASTS.search(threads[0][1]), _PROTOCOL.search(output)
    counts = [int(head) for _, rest in threads for head in rest.split()[:1] if head.isdecimal() and len(head) < 18]
    length = lasts[1] if lasts else f"{sum(counts)} requests" if counts else ""
    clients = f"{sum(int(clients) for clients, _ in threads)} clients"
    return ", ".join(filter(None, (clients, length, protocol[1] if protocol else "")))
