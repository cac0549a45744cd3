"""What every page is made of: templates, style, scripts, the policy that allows only these, facts of the machine."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from redline.model import Environment as Machine
from redline.model import Grade, Metric, Verdict
from redline.report import format as fmt
from redline.report.render.html.tables import breakable, look_of, table_html
from redline.report.sections.trials import precision_text, trial_text, warm_ups
from redline.report.sections.views import invalid_findings, invalid_reason

_HERE = Path(__file__).parent
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


@cache
def templates() -> Environment:
    """Every template of this package, with what all of them may say."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals.update(
        fmt=fmt,
        invalid_reason=invalid_reason,
        warm_ups=warm_ups,
        trial_text=trial_text,
        invalid_findings=invalid_findings,
        precision_text=precision_text,
        breakable=breakable,
        table_html=table_html,
        look_of=look_of,
        verdict_marks=fmt.MARKS,
        grade_marks=fmt.GRADE_MARKS,
        Verdict=Verdict,
        Grade=Grade,
        Metric=Metric,
    )
    return made


_SHARES = ("steal_share", "busy_share")


def machine_facts(machine: Machine) -> list[tuple[str, str]]:
    """Each fact of the environment with a name and a text; what is not known is `unknown`."""
    facts = []
    for name in Machine.model_fields:
        value = getattr(machine, name)
        if value is None or value in ("", ()):
            text = "cores not fixed" if name.endswith("_cpus") else "unknown"
        elif name.endswith("_bytes"):
            text = fmt.size(value)
        elif name in _SHARES:
            text = fmt.percent(value)
        elif isinstance(value, bool):
            text = "on" if value else "off"
        elif name == "port_range":
            text = f"{value[0]} to {value[1]}"
        else:
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        facts.append((name.removesuffix("_bytes").replace("_", " "), text))
    return facts
