"""The report as one self-contained HTML page: no network, no framework, readable without JavaScript."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from redline.model import Environment as Machine
from redline.model import Grade, Metric, Report, Verdict
from redline.report import format as fmt
from redline.report.renderers.html.overview import cost, effects
from redline.report.renderers.html.page import page
from redline.report.renderers.html.places import rankings
from redline.report.renderers.html.plots import payload
from redline.report.renderers.html.waterfall import layers
from redline.report.renderers.rounds import rounds_told
from redline.report.renderers.views import because, built, caveats, doubts, grave, groups, servers, tally

_HERE = Path(__file__).parent
_ASSETS = _HERE / "assets"


class HtmlRenderer:
    """Report -> HTML. Every text is escaped; a content security policy allows our own style and scripts by hash."""

    def render(self, report: Report) -> bytes:
        """The whole page; the same report gives the same bytes."""
        style, library, script = _assets()
        text = (
            _templates()
            .get_template("page.html.j2")
            .render(
                page=page(report),
                cost=cost(report),
                effects=effects(report),
                layers=layers(report),
                ranked=rankings(report),
                report=report,
                doubts=doubts(report),
                tally=tally(report),
                built=built(report),
                caveats=caveats(report),
                machine=_machine(report.environment),
                # Its `<`, `>` and `&` are written as JSON escapes, so it cannot leave its element.
                data=Markup(payload(groups(report), servers(report))),  # noqa: S704
                style=style,
                scripts=(library, script),
                policy=_policy(style, library, script),
            )
        )
        return text.encode(errors="replace")


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.globals.update(
        fmt=fmt,
        because=because,
        grave=grave,
        rounds_told=rounds_told,
        breakable=_breakable,
        camel=_camel,
        verdict_marks=fmt.MARKS,
        grade_marks=fmt.GRADE_MARKS,
        Verdict=Verdict,
        Grade=Grade,
        Metric=Metric,
    )
    return templates


@cache
def _assets() -> tuple[Markup, Markup, Markup]:
    """Our style sheet and the plot library's, the library, our script: files of this package, trusted as code is."""
    vendor = _ASSETS / "vendor"
    style = _read(vendor / "uPlot.min.css") + "\n" + _read(_ASSETS / "page.css")
    return Markup(style), Markup(_read(vendor / "uPlot.iife.min.js")), Markup(_read(_ASSETS / "page.js"))  # noqa: S704


def _breakable(name: str) -> Markup:
    """A name that may be broken before its dots, pluses and equal signs; `join` escapes its parts."""
    return Markup("<wbr>").join(re.split(r"(?=[.+=])", name))


def _camel(name: str) -> Markup:
    """A name such as SimpleGetMulti that may be broken before its capitals."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z0-9])(?=[A-Z])", name))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _policy(style: str, *scripts: str) -> str:
    """Nothing may be loaded from anywhere; only these very texts may act (W3C, Content Security Policy Level 3)."""
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


_SHARES = ("steal_share", "busy_share")


def _machine(machine: Machine) -> list[tuple[str, str]]:
    """Each fact of the environment with a name and a text; what the machine does not tell is said to be unknown."""
    facts = []
    for name in Machine.model_fields:
        value = getattr(machine, name)
        if value is None or value in ("", ()):
            text = "cores not fixed" if name.endswith("_cpus") else "not told"
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
