"""Redline's terms as frozen values. Import them from here; GLOSSARY.md defines them."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.model.base import Frozen
    from redline.model.by_request import MixCpu, RequestCpu, RequestRatio, RequestReport
    from redline.model.catalogue import (
        AttachedServer,
        Build,
        HttpVersion,
        Leg,
        Option,
        OptionValue,
        Ready,
        ServedTls,
        ServerEntry,
        Start,
        Stop,
        Tls,
        TlsVersion,
        Tool,
    )
    from redline.model.cell_report import (
        CellReport,
        MemoryReport,
        Moment,
        PartReport,
        PauseMark,
        TrialReport,
        WatchedSeries,
    )
    from redline.model.connections import AgreedTls, Reach
    from redline.model.distribution import AnsweredBy, BandedPercentile, SharesCompared
    from redline.model.duet import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, LostStarts, TargetTraffic
    from redline.model.environment import Environment
    from redline.model.estimate import (
        COMPARED,
        FEWEST_TRIALS,
        RESPONSE_TIMES,
        SHOWN,
        Comparison,
        Estimate,
        Metric,
        Verdict,
    )
    from redline.model.exchange import Body, Expected, Request, Scenario, Timestamp
    from redline.model.finding import Finding, FindingKind, Grade
    from redline.model.histogram import Histogram, HistogramTable
    from redline.model.hosts import ROLES, ClockReading, HostFacts, LoadShare, Role, UsedHost
    from redline.model.journey import Journey, JourneyStep, Rows, StepCondition, TakenValue
    from redline.model.journey_traffic import JourneyReport, JourneyTraffic
    from redline.model.judged import ObjectiveResult, ObjectiveState, PairSpeed, Precision, Warming, WarmUp
    from redline.model.load import Backend, Closed, EngineMode, Load, LoadStage, Open, Share, Think
    from redline.model.percentile import OtherTime, Percentile, TooFew
    from redline.model.plan import (
        AbortRule,
        AutoTrials,
        Cell,
        Design,
        Objective,
        Plan,
        PlannedDuet,
        PlannedTrial,
        Skipped,
        Suite,
    )
    from redline.model.profile import (
        HOPS,
        Library,
        NativeMemory,
        Profile,
        ProfileFacts,
        ProfileFile,
        ProfileKind,
        ProfileUnit,
        Slice,
        Stack,
        Stacks,
        Subject,
        Thread,
    )
    from redline.model.profiled import (
        FlameGraph,
        FlameNode,
        FrameShare,
        HeatMap,
        HeatRow,
        LibraryShare,
        Points,
        ProfileChange,
        ProfileReport,
        ThreadShare,
    )
    from redline.model.recording import (
        OTHER_LOAD,
        OTHERS,
        CpuOwner,
        Failure,
        FailureKind,
        FixedWork,
        HopFacts,
        Recording,
        Series,
        ServerFacts,
        Stage,
    )
    from redline.model.report import (
        Effect,
        Layer,
        LevelEffect,
        MainEffect,
        MainEffects,
        Place,
        Ranking,
        Report,
        RunReport,
        Waterfall,
    )
    from redline.model.run import Calibration, Enough, Manifest, Run, SameBuilds, StoredProfiles, StoredRecordings
    from redline.model.runtime import Collection, Durations, Pause, RuntimeFacts
    from redline.model.streams import Stream, StreamReport, StreamTraffic
    from redline.model.traffic import (
        Clocks,
        Counts,
        Engine,
        Interval,
        OneWay,
        Outcomes,
        RequestTraffic,
        Signed,
        Traffic,
    )
    from redline.model.validity import Bound, Numbers, numbers_of
    from redline.model.variant import Container, Route, Variant
    from redline.model.websocket import WebSocket
    from redline.model.why import CodeCost, CounterChange, FrameChange, TouchedFunction, WhyReport
else:
    __getattr__ = offered(__name__)
