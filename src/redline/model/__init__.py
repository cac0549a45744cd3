"""The words of Redline as frozen values. Import them from here; GLOSSARY.md says what each means."""

from redline.model.base import Frozen
from redline.model.catalogue import Build, Option, OptionValue, Ready, ServerEntry, Start, Stop, Tool
from redline.model.environment import Environment
from redline.model.estimate import COMPARED, Comparison, Estimate, Metric, Verdict
from redline.model.exchange import Body, Expected, Request, Scenario
from redline.model.finding import Finding, FindingKind, Grade
from redline.model.histogram import Histogram
from redline.model.load import Closed, Load, Open
from redline.model.plan import Cell, Objective, Plan, PlannedTrial, Skipped, Suite, Variant
from redline.model.recording import Failure, FailureKind, Recording, Series, ServerFacts, Stage, Subject
from redline.model.report import (
    CellReport,
    Moment,
    ObjectiveResult,
    Percentile,
    Report,
    RunReport,
    TrialReport,
)
from redline.model.run import Manifest, Run
from redline.model.traffic import Counts, Engine, Interval, Outcomes, Traffic

__all__ = [
    "COMPARED",
    "Body",
    "Build",
    "Cell",
    "CellReport",
    "Closed",
    "Comparison",
    "Counts",
    "Engine",
    "Environment",
    "Estimate",
    "Expected",
    "Failure",
    "FailureKind",
    "Finding",
    "FindingKind",
    "Frozen",
    "Grade",
    "Histogram",
    "Interval",
    "Load",
    "Manifest",
    "Metric",
    "Moment",
    "Objective",
    "ObjectiveResult",
    "Open",
    "Option",
    "OptionValue",
    "Outcomes",
    "Percentile",
    "Plan",
    "PlannedTrial",
    "Ready",
    "Recording",
    "Report",
    "Request",
    "Run",
    "RunReport",
    "Scenario",
    "Series",
    "ServerEntry",
    "ServerFacts",
    "Skipped",
    "Stage",
    "Start",
    "Stop",
    "Subject",
    "Suite",
    "Tool",
    "Traffic",
    "TrialReport",
    "Variant",
    "Verdict",
]
