"""The report as one self-contained HTML page: no network, no framework, readable without JavaScript."""

from functools import cache

from markupsafe import Markup

from redline.model import Report
from redline.report.render.html.overview import cost, effects, rankings
from redline.report.render.html.page import page
from redline.report.render.html.plots import payload
from redline.report.render.html.shell import asset, machine_facts, policy, templates
from redline.report.render.html.waterfall import layers
from redline.report.sections.trials import lone_rounds
from redline.report.sections.views import built, caveats, finding_groups, groups, servers, tally


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
def _assets() -> tuple[Markup, ...]:
    """Our style sheet and the plot library's, the library, what all plots share, our script: files of this package."""
    style = asset("vendor/uPlot.min.css") + "\n" + asset("page.css")
    return tuple(map(Markup, (style, *map(asset, ("vendor/uPlot.iife.min.js", "plot.js", "page.js")))))
