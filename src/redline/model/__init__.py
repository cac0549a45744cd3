"""The words of Redline as frozen values. Import them from here; GLOSSARY.md says what each means."""

from redline.model.base import Frozen
from redline.model.catalogue import Build, Option, OptionValue, Ready, ServerEntry, Start, Stop, Tool
from redline.model.environment import Environment
from redline.model.estimate import COMPARED, SHOWN, Comparison, Estimate, Metric, Verdict
from redline.model.exchange import Body, Expected, Request, Scenario, Timestamp
from redline.model.finding import Finding, FindingKind, Grade
from redline.model.histogram import Histogram
from redline.model.load import Backend, Closed, EngineMode, Load, LoadStage, Open, Share, Think
from redline.model.plan import Cell, Objective, Plan, PlannedTrial, Skipped, Suite, Variant
from redline.model.recording import Failure, FailureKind, Recording, Series, ServerFacts, Stage, Subject
from redline.model.report import (
    CellReport,
    Effect,
    Moment,
    ObjectiveResult,
    OtherTime,
    Percentile,
    Place,
    Ranking,
    Report,
    RunReport,
    TrialReport,
)
from redline.model.route import HttpVersion, ServedTls, Tls, TlsVersion
from redline.model.run import Manifest, Run
from redline.model.traffic import AgreedTls, Counts, Engine, Interval, OneWay, Outcomes, Signed, Traffic

__all__ = [
    "COMPARED",
    "SHOWN",
    "AgreedTls",
    "Backend",
    "Body",
    "Build",
    "Cell",
    "CellReport",
    "Closed",
    "Comparison",
    "Counts",
    "Effect",
    "Engine",
    "EngineMode",
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
    "HttpVersion",
    "Interval",
    "Load",
    "LoadStage",
    "Manifest",
    "Metric",
    "Moment",
    "Objective",
    "ObjectiveResult",
    "OneWay",
    "Open",
    "Option",
    "OptionValue",
    "OtherTime",
    "Outcomes",
    "Percentile",
    "Place",
    "Plan",
    "PlannedTrial",
    "Ranking",
    "Ready",
    "Recording",
    "Report",
    "Request",
    "Run",
    "RunReport",
    "Scenario",
    "Series",
    "ServedTls",
    "ServerEntry",
    "ServerFacts",
    "Share",
    "Signed",
    "Skipped",
    "Stage",
    "Start",
    "Stop",
    "Subject",
    "Suite",
    "Think",
    "Timestamp",
    "Tls",
    "TlsVersion",
    "Tool",
    "Traffic",
    "TrialReport",
    "Variant",
    "Verdict",
]
