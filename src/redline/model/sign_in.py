"""How a request signs in. Its secrets are named as `${NAME}`, variables of the lab's environment, and never kept."""

from redline.model.base import Frozen, omitted_if_default

SIGNED_FOR_NS = 15 * 60 * 1_000_000_000
"""How long AWS takes a signature at most; some services take it for 5 minutes."""
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id", "traceparent", "tracestate"})
"""Headers, in lower case, that no signature covers: proxies change them, so they may differ between requests."""
SET_BY_SIGNING = frozenset({"authorization", "x-amz-date", "date"})
"""Headers, in lower case, that a signature brings along."""


class BasicSignIn(Frozen):
    """A user and a password (RFC 7617)."""

    user: str
    password: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that may name secrets."""
        return self.user, self.password


class AwsSignIn(Frozen):
    """A signature of AWS, Signature Version 4, for a service in a region. `session` is the token of temporary keys."""

    region: str
    service: str
    key: str
    secret: str
    session: str = omitted_if_default("")

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that may name secrets."""
        return self.key, self.secret, self.session


SignIn = BasicSignIn | AwsSignIn


def outlives_signature(lasts_ns: int) -> str:
    """Say that a load of this length outlives its signatures; empty if it does not."""
    if lasts_ns <= SIGNED_FOR_NS:
        return ""
    return f"AWS takes a signature for 15 minutes, and the load with its warm-up takes {lasts_ns / 6e10:.3g}"


def authority(host: str, port: int, *, tls: bool) -> str:
    """The `Host` of requests to a server, as the engine sends it: without the default port and a zone of IPv6."""
    name = f"[{host.partition('%')[0]}]" if ":" in host else host
    return name if port == (443 if tls else 80) else f"{name}:{port}"
