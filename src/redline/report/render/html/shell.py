"""What every page is put together from: the style, the scripts, and the policy that allows these texts alone."""

import base64
import hashlib
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
TEMPLATES = _HERE / "templates"
_ASSETS = _HERE / "assets"


@cache
def asset(name: str) -> str:
    """A file of this package, trusted as code is."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def policy(style: str, *scripts: str) -> str:
    """Nothing may be loaded from anywhere; only these very texts may act (W3C, Content Security Policy Level 3)."""
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
