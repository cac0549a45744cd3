"""Check that signatures of AWS hold for a whole load, and in duets for all servers. Pure."""

from collections.abc import Iterator

from redline.errors import UsageError
from redline.model import AttachedServer, Request, Suite, Variant
from redline.model.sign_in import AwsSignIn, authority, outlives_signature
from redline.wording import part


def check_signed(suite: Suite) -> None:
    """Raise UsageError where requests of a suite are signed and its loads are too long, or its duets have many hosts.

    They are signed at the beginning of each load, and a duet is one load, of all servers with the same requests.
    """
    signed = list(_signed(suite))
    if not signed:
        return
    is_duet = suite.design != "interleaved"
    servers = len(suite.variants) if is_duet else 1
    for load in suite.loads:
        lasts_ns = (suite.warmup_ns + load.duration_ns) * servers
        if problem := outlives_signature(lasts_ns):
            raise UsageError(f"{_line(signed[0])}: {problem}", hint="measure for less, or more often")
    without_host = next((asked for asked in signed if not any(_is_host(name) for name in asked.headers)), None)
    hosts = dict.fromkeys(_host(variant) or f"a port of its own for {variant.slug}" for variant in suite.variants)
    if is_duet and without_host is not None and (len(hosts) > 1 or None in map(_host, suite.variants)):
        message = f"{_line(without_host)}: it is signed for one Host, and in a duet several servers get it"
        hint = f"say which they all get: {part('headers', 'Host: api.example')}, or `headers` of the request"
        raise UsageError(f"{message}: {', '.join(list(hosts)[:3])}", hint=hint)


def _signed(suite: Suite) -> Iterator[Request]:
    return (
        request for scenario in suite.scenarios for request in scenario.requests if isinstance(request.auth, AwsSignIn)
    )


def _is_host(name: str) -> bool:
    return name.lower() == "host"


def _host(variant: Variant) -> str | None:
    """The `Host` of requests to a server; None where only its start says the port."""
    entry = variant.entry
    if not isinstance(entry, AttachedServer) or variant.hops:
        return None
    return authority(entry.host, entry.port, tls=variant.tls is not None)


def _line(request: Request) -> str:
    return f"{request.name or f'{request.method} {request.path}'} is signed for AWS"
