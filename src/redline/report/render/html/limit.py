"""A limit as one self-contained HTML page: no network, no framework, its answers readable without JavaScript."""

from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from redline.model.limits import LimitReport
from redline.quantities import rate
from redline.report.render.html import machine_facts, templates
from redline.report.render.html.limit_page import limit_page, probe_note
from redline.report.render.html.limit_plots import payload
from redline.report.render.html.shell import asset, policy
from redline.report.sections import limit as words


class LimitHtmlRenderer:
    """LimitReport -> HTML. Texts are escaped; a content security policy allows our own style and scripts by hash."""

    def render(self, report: LimitReport) -> bytes:
        """The whole page; the same report gives the same bytes."""
        style = "\n".join(map(asset, ("vendor/uPlot.min.css", "page.css", "limit.css")))
        scripts = tuple(map(asset, ("vendor/uPlot.iife.min.js", "plot.js", "limit.js")))
        text = (
            _templates()
            .get_template("limit.html.j2")
            .render(
                report=report,
                page=limit_page(report),
                title=words.title(report),
                machine=machine_facts(report.environment),
                # Its `<`, `>` and `&` are written as JSON escapes, so it cannot leave its element.
                data=Markup(payload(report.cells)),  # noqa: S704
                style=Markup(style),  # noqa: S704
                scripts=tuple(map(Markup, scripts)),
                policy=policy(style, *scripts),
            )
        )
        return text.encode(errors="replace")


@cache
def _templates() -> Environment:
    made = templates().overlay()
    own = {"words": words, "rate": rate, "probe_note": probe_note}
    made.globals = {**templates().globals, **own}
    return made
