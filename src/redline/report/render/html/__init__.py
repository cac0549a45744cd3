"""The report as one self-contained HTML page: no network, no framework, readable without JavaScript."""

from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from redline.model import Environment as Machine
from redline.model import Grade, Metric, Report, Verdict
from redline.report import format as fmt
from redline.report.render.html.overview import cost, effects
from redline.report.render.html.page import page
from redline.report.render.html.places import rankings
from redline.report.render.html.plots import payload
from redline.report.render.html.shell import TEMPLATES, asset, policy
from redline.report.render.html.tables import breakable, look_of, table_html
from redline.report.render.html.waterfall import layers
from redline.report.sections.trials import lone_rounds, precision_text, trial_text, warm_ups
from redline.report.sections.views import (
    built,
    caveats,
    finding_groups,
    groups,
    invalid_findings,
    invalid_reason,
    servers,
    tally,
)


class HtmlRenderer:
    """Report -> HTML. Every text is escaped; a content security policy allows our own style and scripts by hash."""

    def render(self, report: Report) -> bytes:
        """The whole page; the same report gives the same bytes."""
        style, *scripts = _assets()
        text = (
            templates()
            .get_template("page.html.j2")
            .render(
                page=page(report),
                cost=cost(report),
                effects=effects(report),
                layers=layers(report),
                ranked=rankings(report),
                report=report,
                doubts=finding_groups(report),
                tally=tally(report),
                built=built(report),
                caveats=caveats(report),
                lone_rounds=lone_rounds(report),
                machine=machine_facts(report.environment),
                # Its `<`, `>` and `&` are written as JSON escapes, so it cannot leave its element.
                data=Markup(payload(groups(report), servers(report))),  # noqa: S704
                style=style,
                scripts=scripts,
                policy=policy(style, *scripts),
            )
        )
        return text.encode(errors="replace")


@cache
def templates() -> Environment:
    """Every template of this package, with what all of them may say."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
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


@cache
def _assets() -> tuple[Markup, ...]:
    """Our style sheet and the plot library's, the library, what all plots share, our script: files of this package."""
    style = asset("vendor/uPlot.min.css") + "\n" + asset("page.css")
    return tuple(map(Markup, (style, *map(asset, ("vendor/uPlot.iife.min.js", "plot.js", "page.js")))))


_SHARES = ("steal_share", "busy_share")


def machine_facts(machine: Machine) -> list[tuple[str, str]]:
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
