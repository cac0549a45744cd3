"""What is needed once a load has ended, from what all uses upward: it is imported while the server warms up."""

OF_RESULTS = (
    "numpy",  # first: intervals are read with it
    "redline.render.terminal",  # panels need it at once
    "redline.report.histogram",
    "redline.model.traffic:Counts",
    "redline.model.traffic:Interval",
    "redline.model.traffic:Traffic",
    "redline.model.recording:Series",
    "redline.model.recording:CpuOwner",
    "redline.model.recording:Recording",
    "redline.model.finding:Finding",
    "pydantic.dataclasses",
    "redline.findings.table",
    "redline.analysis.results",
    "redline.analysis.judging",
    "redline.model.judged:WarmUp",
    "redline.model.estimate:Estimate",
    "redline.model.percentile:TooFew",
    "redline.model.load_result:Deviation",
    "redline.model.load_result:LoadDeviations",
    "redline.model.load_result:LoadedServer",
    "redline.model.load_result:RequestsSent",
    "redline.model.load_result:LoadFacts",
    "redline.model.cell_report:TrialReport",
    "redline.model.cell_report:CellReport",
    "redline.model.load_result:LoadResult",
    "redline.report.load",
)
"""What judges a load."""

OF_VIEWS = (
    *OF_RESULTS,
    "redline.model.timeline:TimedSteps",
    "redline.model.timeline:TrialTimeline",
    "redline.profiles.why",
    "redline.analysis.build",
    "redline.model.run:Run",
    "redline.model.report:RunReport",
    "redline.model.report:Report",
    "concurrent.futures.process",
    "jinja2",
    "redline.document.figures",
    "redline.render.html",
    "redline.report.distributions",
    "redline.report.doubt",
    "redline.report.explorer",
    "redline.report.results",
    "redline.report.timelines",
    "redline.report.run",
    "redline.render.ci",
    "redline.render.renderers",
    "redline.running.views",
)
"""What judges a run and writes its views."""

OF_DUETS = (
    "redline.model.duet:DuetBlock",  # first: each block of the measurement is one
    *OF_VIEWS,
    "redline.model.duet:DuetTraffic",
    "redline.model.duet:DuetRecording",
    "redline.model.distribution:SharesCompared",
    "redline.model.estimate:DuetComparison",
    "redline.model.estimate:Comparison",
    "redline.model.timeline:BlockStep",
    "redline.model.timeline:StartTimeline",
    "redline.model.timeline:DuetTimeline",
)
"""The same of a run with duets."""

OF_SEARCHES = (
    *OF_VIEWS,
    "redline.model.limits:LimitAnswer",
    "redline.model.limits:LimitReport",
    "redline.render.csvfile",
    "redline.render.markdown",
)
"""The same of a search: the first load of a start warms it up."""
