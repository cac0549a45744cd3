"""What is needed once a load has ended, from what all uses upward: it is imported while the server warms up."""

OF_RESULTS = (
    "redline.model.traffic:Counts",
    "redline.model.traffic:Interval",
    "redline.model.traffic:Traffic",
    "redline.model.recording:Series",
    "redline.model.recording:CpuOwner",
    "redline.model.finding:Finding",
    "pydantic.dataclasses",
    "numpy.ma",  # of medians
    "redline.analysis.judging",
    "redline.model.judged:WarmUp",
    "redline.model.estimate:Estimate",
    "redline.model.timeline:TimedSteps",
    "redline.model.timeline:TrialTimeline",
    "redline.model.percentile:TooFew",
    "redline.model.load_result:Deviation",
    "redline.model.load_result:LoadDeviations",
    "redline.model.load_result:LoadedServer",
    "redline.model.load_result:RequestsSent",
    "redline.model.load_result:LoadFacts",
    "redline.model.cell_report:TrialReport",
    "redline.model.cell_report:CellReport",
    "redline.model.load_result:LoadResult",
)
"""What judges a load."""

OF_VIEWS = (
    *OF_RESULTS,
    "redline.profiles.why",
    "redline.analysis.build",
    "redline.model.run:Run",
    "redline.model.report:RunReport",
    "redline.model.report:Report",
    "concurrent.futures.process",
    "jinja2",
    "redline.render.html",
    "redline.report.doubt",
    "redline.report.explorer",
    "redline.report.run",
    "redline.render.renderers",
    "redline.running.views",
)
"""What judges a run and writes its views."""

OF_DUETS = (
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
