"""The cipher suites that the engine has, as IANA and OpenSSL name them; see docs/reference/tls.md."""

from collections.abc import Sequence

from redline.errors import WrongValueError
from redline.quantities import clip, did_you_mean

OF_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
OF_1_2 = tuple(
    name
    for key in ("ECDSA", "RSA")
    for openssl, iana in (
        ("AES128-GCM-SHA256", "AES_128_GCM_SHA256"),
        ("AES256-GCM-SHA384", "AES_256_GCM_SHA384"),
        ("CHACHA20-POLY1305", "CHACHA20_POLY1305_SHA256"),
    )
    for name in (f"ECDHE-{key}-{openssl}", f"TLS_ECDHE_{key}_WITH_{iana}")
)
_BY_VERSION = {"1.3": OF_1_3, "1.2": OF_1_2}


def check_ciphers(names: Sequence[str], versions: Sequence[str]) -> None:
    """Raise WrongValueError for a suite that is not known, and for a version that is left without any suite."""
    known = {name: version for version, suites in _BY_VERSION.items() for name in suites}
    for name in names:
        if name.upper() not in known:
            all_of = [suite for version in versions for suite in _BY_VERSION[version]]
            fitting = [suite for suite in all_of if not suite.startswith("TLS_ECDHE")]  # shorter than IANA's names
            hint = " ".join(filter(None, [did_you_mean(name, tuple(known)), f"they are {', '.join(fitting)}"]))
            raise WrongValueError(f"`{clip(name)}` is not a cipher suite that the engine has", hint, field="ciphers")
    given = {known[name.upper()] for name in names}
    for version in versions:
        if names and version not in given:
            hint = f"add one, such as {_BY_VERSION[version][0]}, or allow the other version alone"
            message = f"none of the suites is one of TLS {version}, which may be negotiated"
            raise WrongValueError(message, hint, field="ciphers")
