"""Check how the servers of a suite are compared: its design and budget, and conflicts with other keys. Pure."""

from redline.errors import Problem
from redline.lazily import dataclass
from redline.model import AttachedServer, Design, Load, Suite, Variant
from redline.model.load import Replay
from redline.schema.document import Path
from redline.schema.suite import SuiteSchema
from redline.suite.budget import MOST_COMPARED, most_starts, start_times
from redline.suite.validate.checking import Sheet
from redline.suite.validate.loads import Loads
from redline.wording import advice

UNSAID_NS = 1
"""The placeholder for the length of a load without `for`, until the budget determines it."""


@dataclass(frozen=True)
class Compared:
    """The variants of a suite, and their baselines by slug, as in `Suite`."""

    variants: tuple[Variant, ...]
    baseline: str | None
    baselines: dict[str, str]

    @property
    def groups(self) -> list[list[Variant]]:
        """Each baseline with the variants that are compared with it."""
        by_baseline: dict[str, list[Variant]] = {}
        for variant in self.variants:
            baseline = self.baselines.get(variant.slug, self.baseline)
            if baseline is not None and baseline != variant.slug:
                by_baseline.setdefault(baseline, []).append(variant)
        by_slug = {variant.slug: variant for variant in self.variants}
        return [[by_slug[slug], *others] for slug, others in by_baseline.items() if slug in by_slug]


def read_design(sheet: Sheet, schema: SuiteSchema, compared: Compared, loads: Loads) -> Design:
    """The written design, or duets if servers are compared; its problems are noted."""
    fitting = [load for load in loads.values() if load and not unfit(load.load("load", Replay((0,))))]
    can = bool(compared.groups and fitting and schema.driver is None)
    design: Design = schema.design or ("duet" if schema.budget or can else "interleaved")
    if schema.budget is not None:
        _check_budget(sheet, schema, compared, loads)
    if design == "interleaved":
        if schema.same_answers:
            message = "`same_answers` is about the servers of a duet"
            sheet.wrong(("same_answers",), message, "write `design: duet`, or remove it", key=True)
        if schema.why:
            message = "`why` is about the servers of a duet"
            sheet.wrong(("why",), message, "write `design: duet`, or remove it", key=True)
    else:
        _check_duets(sheet, schema, compared)
    if schema.metric == "throughput":
        for name, load in loads.items():
            if load and not load.load(name, Replay((0,))).saturates:
                message = f"the load `{name}` sets the rate, so servers do not differ in throughput"
                sheet.wrong(("metric",), message, "write `cpu` or `p99`, or leave it out")
    if schema.builds > 1 and any(variant.is_own and not variant.is_revision for variant in compared.variants):
        message = "only servers of the catalogue and revisions are built several times"
        sheet.wrong(("builds",), message, "leave it out", key=True)
    return design


def _check_duets(sheet: Sheet, schema: SuiteSchema, compared: Compared) -> None:
    path: Path = ("design",) if schema.design else ("budget",)
    if schema.design and schema.driver is not None:
        message = f"duets are made by redline-engine, and this suite has the driver `{schema.driver}`"
        sheet.wrong(path, message, "write `design: interleaved`, or remove `driver`")
    if schema.design and schema.baseline is None and schema.budget is None:
        sheet.wrong(path, "a duet compares servers with a baseline, and there is none", "add `baseline`")
    attached = any(isinstance(variant.entry, AttachedServer) for group in compared.groups for variant in group)
    if schema.design == "parallel-duet" and attached:
        message = "servers behind URLs are already running, so Redline cannot assign cores to them"
        sheet.wrong(path, message, "write `design: duet`, or give commands")
    if slow := next((rule for rule in schema.abort_when if rule.metric != "errors"), None):
        message = f"`{slow.text}`: servers are compared in duets, whose short slices have no percentiles"
        instead = "write `errors > 5% for 3s`"
        hint = instead if schema.budget is not None else f"{instead}, or `design: interleaved` of the suite"
        sheet.wrong(("abort_when",), message, hint)


def _check_budget(sheet: Sheet, schema: SuiteSchema, compared: Compared, loads: Loads) -> None:
    for key, message, hint in (
        ("trials", "a suite has `trials` or a `budget`, not both", "remove one of the two"),
        ("quick", "a budget says how long it takes, so `quick` has nothing to shorten", "remove it"),
        ("objective", "with a `budget` servers are compared, and have no objectives to meet", "remove it"),
        ("monitors", "with a `budget` servers are measured in duets alone, which monitors do not watch", "remove it"),
        ("driver", "with a `budget` servers are measured in duets, which only redline-engine makes", "remove it"),
        ("rest", "a budget is spent by measuring", "remove it, or write `trials` in place of `budget`"),
        ("ceiling", "with a `budget` no server is measured alone, nor a ceiling", "remove it, or write `trials`"),
    ):
        if key in schema.model_fields_set:
            sheet.wrong((key,), message, hint, key=True)
    if schema.design == "interleaved":
        hint = "remove `design`, or write `trials` in place of `budget`"
        sheet.wrong(("design",), "a budget is for comparing servers by duets", hint)
    if not sheet.is_sound(("servers",)) or not sheet.is_sound(("baseline",)):
        return
    if len(compared.variants) == 1:
        hint = "add a second server, or write `trials`"
        sheet.wrong(("budget",), "a budget is for comparing servers, and there is only one", hint)
    inside = {variant.slug for group in compared.groups for variant in group}
    for variant in compared.variants if len(compared.variants) > 1 else ():
        if variant.slug not in inside:
            message = f"`{variant.slug}` has no baseline, and a budget is for comparing servers"
            sheet.wrong(("baseline",), message, "give it a baseline, or remove it")
    for name, load in loads.items():
        if load and (why := unfit(load.load(name, Replay((0,))))):
            hint = advice("trials", "compare it with `trials`")
            sheet.wrong(("loads", name), f"the load `{name}` {why}, which duets do not support", hint, key=True)


def unfit(load: Load) -> str:
    """The reason why a duet cannot have this load; empty if it can."""
    if load.count is not None:
        return "ends by `count`"
    if load.share is not None:
        return "has a rate that is a share of a capacity from trials"
    return "" if load.fits_duet else "changes"


def within_budget(suite: Suite, *, warms_up: bool) -> tuple[Suite, list[Problem]]:
    """The suite with the values that its budget implies: the missing lengths, and the maximum number of rounds.

    `warms_up` says that the suite has a written warm-up.
    """
    auto = suite.auto
    assert auto is not None, "a suite with a budget"
    assert auto.budget_ns is not None, "a suite with a budget"
    compared = Compared(suite.variants, suite.baseline, suite.baselines)
    sizes = [
        1 + len(group[at : at + MOST_COMPARED])
        for group in compared.groups
        for at in range(1, len(group), MOST_COMPARED)
    ]
    if not sizes:
        return suite, [Problem("no comparison of this suite is left", "select a baseline and its partners")]
    parts, servers = len(suite.scenarios) * len(suite.loads), 1 + max(sizes)  # plus the control
    once = all(isinstance(variant.entry, AttachedServer) for group in compared.groups for variant in group)
    share_ns = auto.budget_ns // len(sizes)
    times = start_times(share_ns, servers, parts, once=once)
    loads = tuple(load.lasting(times.measure_ns) if load.duration_ns == UNSAID_NS else load for load in suite.loads)
    measured_ns = servers * len(suite.scenarios) * sum(load.duration_ns for load in loads)
    fixed_ns = 0 if suite.warmup_detect or not warms_up else servers * parts * suite.warmup_ns
    return suite.within_budget(
        loads=loads,
        trials=1 if once else most_starts(share_ns, measured_ns + fixed_ns),
        at_least=1 if once else auto.at_least,
        warm_up=None if warms_up else (times.warmup_ns, times.warmup_again_ns if parts > 1 else None),
    ), []
