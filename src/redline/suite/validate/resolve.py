"""A suite's text or values, and a catalogue -> Suite. Pure: no disk, and every problem of the file at once."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, product
from pathlib import PurePath

from redline.errors import UsageError, WrongValueError
from redline.model import AutoTrials, EngineMode, Load, Metric, Objective, Request, Scenario, Suite, Variant
from redline.model.load import Replay
from redline.model.plan import cell_slug
from redline.model.template import has_placeholders
from redline.quantities import clip, duration
from redline.schema.bodies import BODIES
from redline.schema.document import Document, Path, parse_document
from redline.schema.http_texts import http2_forbids
from redline.schema.load import LoadSchema
from redline.schema.objectives import Selectable, parse_objectives
from redline.schema.suite import OwnScenarioSchema, ServerSchema, SuiteSchema, WarmUpLoadSchema
from redline.suite.budget import FEWEST_STARTS
from redline.suite.catalogue import Catalogue, check_against
from redline.suite.project import Origins
from redline.suite.screening import screened
from redline.suite.validate.baselines import read_baselines
from redline.suite.validate.checking import Sheet, raise_all, suggest
from redline.suite.validate.experiment import UNSAID_NS, Compared, read_design, within_budget
from redline.suite.validate.journeys import conflict, read_scenario
from redline.suite.validate.loads import Loads, check_loads, read_warm_up
from redline.suite.validate.overrides import Overrides, apply_overrides, quickened
from redline.suite.validate.referenced_files import NO_FILES, Files, noted
from redline.suite.validate.routes import read_routes
from redline.suite.validate.servers import Names, read_ceiling, read_variants
from redline.suite.validate.signing import check_signed

MOST_TRIALS_IN_ALL = 100_000
_WARMUP_NS = 1_000_000_000
_METRICS = {"cpu": Metric.CPU_PER_REQUEST}


def read_suite(  # noqa: PLR0913, PLR0917 - what is read, where, and with what
    text: str,
    file: str,
    catalogue: Catalogue,
    overrides: Overrides,
    files: Files = NO_FILES,
    origins: Origins = Origins(),  # noqa: B008 - frozen
) -> Suite:
    """Read a suite from a file's text, as `suite_of` reads a document."""
    return suite_of(parse_document(text, file), catalogue, overrides, files, origins)


def suite_of(
    document: Document,
    catalogue: Catalogue,
    overrides: Overrides,
    files: Files = NO_FILES,
    origins: Origins = Origins(),  # noqa: B008 - frozen
) -> Suite:
    """Resolve the suite of a document against the catalogue, and apply the overrides.

    `files` reads the files that it names; `origins` resolves revisions. Raises UsageError with every problem of the
    document, or, if it has none, of the overrides.
    """
    sheet = Sheet(document, SuiteSchema, "docs/reference/suite.md", {BODIES: files.body})
    for item in (OwnScenarioSchema, ServerSchema, LoadSchema):  # read singly too; the suite's validator takes theirs
        item.model_rebuild()
    schema = sheet.read(SuiteSchema)
    scenarios = _scenarios(sheet, catalogue, files, origins)
    names = Names(catalogue, files, read_routes(sheet, catalogue), origins, tuple(scenarios))
    variants = read_variants(sheet, names)
    _check_scenarios(sheet, variants)
    loads = check_loads(sheet)
    replayed = _replayed(sheet, loads, scenarios, files)
    _check_journeys(sheet, loads, scenarios)
    _check_streams(sheet, loads, scenarios, variants)
    _check_websockets(sheet, scenarios, variants)
    _check_bodies(sheet, loads, scenarios, variants)
    if schema is not None and schema.budget is None:
        _check_rules_can_hold(sheet, schema, loads)
    ceiling = read_ceiling(sheet, names)
    baseline, baselines = read_baselines(sheet, catalogue, variants)
    if schema is not None and schema.budget is not None and schema.baseline is None and variants:
        baseline = variants[0].slug
    design = schema and read_design(sheet, schema, Compared(tuple(variants), baseline, baselines), loads)
    if schema is not None and design not in {None, "interleaved"}:
        _check_duets_of_journeys(sheet, schema, scenarios)
    if schema is not None:
        _check_claims(sheet, schema, variants, scenarios)
    objectives = _objectives(sheet, schema, scenarios) if schema and sheet.is_sound(("scenarios",)) else {}
    sheet.raise_problems()
    assert schema is not None, "a file without problems was read"
    assert design is not None, "a file without problems was read"
    by = schema.warmup_by
    warmup_ns, warmup_detect = read_warm_up(_WARMUP_NS if schema.warmup is None else schema.warmup)
    suite = Suite(
        name=_name(document.file),
        about=schema.about,
        variants=tuple(variants),
        baseline=baseline,
        baselines=baselines,
        ceiling=ceiling,
        scenarios=tuple(scenarios),
        loads=tuple(load.load(name, replayed.get(name, Replay()), UNSAID_NS) for name, load in schema.loads.items()),
        warmup_ns=warmup_ns,
        warmup_detect=warmup_detect,
        warms_counted=_asks_to_warm_up(schema, overrides),
        warmup_by=schema.loads[by].load(by) if isinstance(by, str) else by and by.load,
        trials=schema.trials if isinstance(schema.trials, int) else schema.trials.auto.at_most,
        auto=_auto(schema),
        builds=schema.builds,
        rest_ns=schema.rest or 0,
        seed=schema.seed,
        design=design,
        alone=schema.budget is None,
        metric=schema.metric and (_METRICS.get(schema.metric) or Metric(schema.metric)),
        same_answers=schema.same_answers,
        timeout_ns=schema.timeout,
        threshold=schema.threshold,
        objectives=tuple(dict.fromkeys(chain.from_iterable(objectives.values()))),
        objective_sets={name: conditions for name, conditions in objectives.items() if name},
        abort_when=schema.abort_when,
        claims=tuple(claim.claimed() for claim in schema.claims),
        profile=tuple(dict.fromkeys(schema.profile)),
        why=schema.why,
        driver=schema.driver,
        monitors=tuple(dict.fromkeys(schema.monitors)),
        engine=EngineMode.model_validate(schema.engine.model_dump()),
        load_hosts=schema.hosts.load if schema.hosts else 1,
        fit=schema.fit,
        host_retries=schema.hosts.retries if schema.hosts else 0,
    )
    if overrides.quick:
        suite = quickened(suite, schema.quick)
    changed, problems = apply_overrides(suite, overrides, catalogue)
    raise_all(problems)
    if schema.budget is not None:
        warms_up = schema.warmup is not None or overrides.warmup_ns is not None or overrides.warmup_detect
        changed, problems = within_budget(changed, warms_up=warms_up)
        raise_all(problems)
    changed = screened(changed) if overrides.screen else changed
    trials = len(changed.variants) * len(changed.scenarios) * len(changed.loads) * changed.trials
    if trials > MOST_TRIALS_IN_ALL:
        raise UsageError(f"this suite has {trials} trials; at most {MOST_TRIALS_IN_ALL}", hint="write shorter axes")
    check_signed(changed)
    return changed


def _asks_to_warm_up(schema: SuiteSchema, overrides: Overrides) -> bool:
    """Whether the user asks for a warm-up, which otherwise has its default."""
    quick = overrides.quick and schema.quick is not None and schema.quick.warmup is not None
    written = schema.warmup is not None or schema.warmup_by is not None
    return written or quick or overrides.warmup_ns is not None or overrides.warmup_detect


def _objectives(sheet: Sheet, schema: SuiteSchema, scenarios: list[Scenario]) -> dict[str, tuple[Objective, ...]]:
    """The sets of objectives, after noting their problems."""
    known = Selectable.of(schema.loads, scenarios)
    has_names, sets = "" not in schema.objective, {}
    for name, texts in schema.objective.items():
        try:
            sets[name] = parse_objectives(", ".join(texts), known)
        except WrongValueError as error:
            sheet.wrong(("objective", name) if has_names else ("objective",), error.message, error.hint)
    return sets


def _check_claims(
    sheet: Sheet, schema: SuiteSchema, variants: Iterable[Variant], scenarios: Iterable[Scenario]
) -> None:
    """Note claims about cells that the suite does not have."""
    if not schema.claims or not (sheet.is_sound(("servers",)) and sheet.is_sound(("scenarios",))):
        return
    cells = {
        cell_slug(variant.slug, scenario.name, load)
        for variant, scenario, load in product(variants, scenarios, schema.loads)
    }
    for at, claim in enumerate(schema.claims):
        for key in ("of", "to"):
            slug = getattr(claim, key)
            if slug is not None and slug not in cells:
                hint = suggest(slug, sorted(cells), "the suite has")
                sheet.wrong(("claims", at, key), f"there is no cell `{clip(slug, 100)}`", hint)


def _auto(schema: SuiteSchema) -> AutoTrials | None:
    if schema.budget is not None:
        return AutoTrials(at_least=FEWEST_STARTS, budget_ns=schema.budget)
    if isinstance(schema.trials, int):
        return None
    auto = schema.trials.auto
    return AutoTrials(precision=auto.precision, at_least=auto.at_least, budget_ns=auto.budget)


def _name(file: str) -> str:
    """The file's name without its extension, safe as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePath(file).stem).strip("-") or "suite"


def _replayed(sheet: Sheet, loads: Loads, scenarios: Iterable[Scenario], files: Files) -> dict[str, Replay]:
    """The recording of every load with replayed arrivals, by the load's name."""
    recordings = {}
    fewest = min(scenarios, key=lambda scenario: len(scenario.requests), default=None)
    for name, load in loads.items():
        if load and load.open and (file := load.open.replayed):
            path = ("loads", name, "open", "arrivals", "replay")
            recording = recordings[name] = noted(sheet, path, partial(files.replay, file)) or Replay()
            last = max(recording.requests, default=-1) + 1
            if fewest is not None and last > len(fewest.requests):
                message = f"{file} has request {last}, and the scenario `{fewest.name}` has {len(fewest.requests)}"
                sheet.wrong(path, message, "give the list of requests that was written with it")
    return recordings


def _check_journeys(sheet: Sheet, loads: Loads, scenarios: Sequence[Scenario]) -> None:
    """Note what loads, and a driver, ask of journeys that they cannot do."""
    given = list[tuple[Path, Load]]()
    given += ((("loads", name), load.load("load", Replay((0,)))) for name, load in loads.items() if load is not None)
    by = sheet.document.at(("warmup_by",))
    if isinstance(by, dict) and (warming := sheet.sound(WarmUpLoadSchema, ("warmup_by",))):
        given.append((("warmup_by",), warming.load))
    if by is not None and (once := next((scenario.name for scenario in scenarios if scenario.takes_rows_once), None)):
        message = f"`{once}` takes no row twice, and a load to warm up would take them first"
        sheet.wrong(("warmup_by",), message, "remove it, or write `use: turn`")
    for (path, load), scenario in product(given, scenarios):
        if wrong := conflict(scenario, load):
            kind = () if path == ("warmup_by",) else (load.shape.kind,)
            sheet.wrong((*path, *kind, *([wrong.key] if wrong.key else [])), wrong.message, wrong.hint)
    driver = sheet.document.at(("driver",))
    if driver is not None and (journey := next((scenario.name for scenario in scenarios if scenario.journey), None)):
        message = f"`{journey}` is a journey, which only redline-engine takes"
        sheet.wrong(("driver",), message, "remove `driver`, or load requests that need no answers of others")


def _check_streams(sheet: Sheet, loads: Loads, scenarios: Iterable[Scenario], variants: Iterable[Variant]) -> None:
    """Note loads that pipeline requests behind conversations, and a driver, which does not count messages."""
    requests = [request for scenario in scenarios for request in scenario.requests if request.stream is not None]
    if not requests:
        return
    stream = f"{requests[0].line} is a conversation"
    alone = any(request.websocket for request in requests)
    pipelines = alone or any(variant.http == "1.1" for variant in variants)
    for name, load in loads.items() if pipelines else ():
        if load is not None and (shape := load.load("load", Replay((0,))).shape).depth > 1:
            message = f"{stream}, and requests that are pipelined behind it would wait for its end"
            hint = "remove `depth`" if alone else "remove `depth`, or load it over HTTP/2"
            sheet.wrong(("loads", name, shape.kind, "depth"), message, hint)
    if sheet.document.at(("driver",)) is not None:
        message = f"{stream}, whose messages only redline-engine counts"
        sheet.wrong(("driver",), message, "remove `driver`, or load requests whose answers end")


def _check_websockets(sheet: Sheet, scenarios: Iterable[Scenario], variants: Iterable[Variant]) -> None:
    """Note what servers and a driver cannot do with WebSockets."""
    opened = [(scenario, request) for scenario in scenarios for request in scenario.requests if request.websocket]
    opening = next((request for _, request in opened), None)
    if opening is None:
        return
    why = [(request, "is a step of a journey") for scenario, request in opened if scenario.journey]
    why += [(request, "has placeholders") for _, request in opened if _opens_with_placeholders(request)]
    if why and any(variant.http == "2" for variant in variants):
        request, what = why[0]
        message = f"{request.line} {what}, so it is opened over HTTP/1.1 alone"
        sheet.wrong(("servers",), message, "leave out `http: 2`, or write values in a scenario of its own")
    if sheet.document.at(("driver",)) is not None:
        message = f"{opening.line} carries messages, which only redline-engine sends"
        sheet.wrong(("driver",), message, "remove `driver`, or load requests")


def _opens_with_placeholders(request: Request) -> bool:
    return any(map(has_placeholders, (request.path, *(value for _, value in request.header_lines))))


def _check_bodies(sheet: Sheet, loads: Loads, scenarios: Iterable[Scenario], variants: Iterable[Variant]) -> None:
    """Note what loads, servers and a driver cannot do with bodies in chunks, and with those that wait for an answer."""
    requests = [request for scenario in scenarios for request in scenario.requests]
    chunked = next((request for request in requests if request.body is not None and request.body.chunked), None)
    waiting = next((request for request in requests if request.expect_continue_ns is not None), None)
    has_driver = sheet.document.at(("driver",)) is not None
    if chunked is not None and has_driver:
        message = f"{chunked.method} {chunked.path} has a body in chunks, which only redline-engine sends"
        sheet.wrong(("driver",), message, "remove `driver`, or `chunked`")
    if waiting is None:
        return
    named = f"{waiting.method} {waiting.path} waits with its body"
    if has_driver:
        sheet.wrong(("driver",), f"{named}, which only redline-engine does", "remove `driver`, or `expect_continue`")
    if any(variant.http == "2" for variant in variants):
        hint = "remove `expect_continue`, or load it over HTTP/1.1"
        sheet.wrong(("servers",), f"{named} for an answer 100, which is done in HTTP/1.1 alone", hint)
    for name, load in loads.items():
        if load is not None and (shape := load.load("load", Replay((0,))).shape).depth > 1:
            message = f"{named}, and requests that are pipelined behind it would come before the body"
            sheet.wrong(("loads", name, shape.kind, "depth"), message, "remove `depth`, or `expect_continue`")


def _check_rules_can_hold(sheet: Sheet, schema: SuiteSchema, loads: Loads) -> None:
    """Note a condition of `abort_when` that has to hold for longer than any load lasts."""
    known = [load for load in loads.values() if load is not None and load.duration is not None]
    if len(known) < len(loads) or not known:
        return
    longest_ns = max(load.duration or 0 for load in known)
    for rule in schema.abort_when:
        if rule.for_ns > longest_ns:
            message = f"`{rule.text}` cannot end a load of {duration(longest_ns)}"
            sheet.wrong(("abort_when",), message, "shorten its time, or measure for longer")


def _check_duets_of_journeys(sheet: Sheet, schema: SuiteSchema, scenarios: Sequence[Scenario]) -> None:
    """Note what duets cannot do with journeys."""
    for scenario in scenarios:
        journey = scenario.journey
        if journey is None:
            continue
        if schema.same_answers:
            message = f"`{scenario.name}` is a journey, whose answers have values of each server's own"
            sheet.wrong(("same_answers",), message, "remove it, or compare requests that need no answers of others")
        if scenario.takes_rows_once:
            at = ("scenarios",) if schema.design is None else ("design",)
            hint = "write `use: turn`" + ("" if schema.budget else ", or `design: interleaved`")
            message = f"`{scenario.name}` takes no row twice, and in duets all servers get the same rows"
            sheet.wrong(at, message, hint)


def _scenarios(sheet: Sheet, catalogue: Catalogue, files: Files, origins: Origins) -> list[Scenario]:
    """The written scenarios, or else, if a revision is compared, the scenarios of redline.yaml."""
    if sheet.document.at(("scenarios",)) is None:
        return _scenarios_of_project(sheet, origins)
    scenarios: list[Scenario] = []
    for path in sheet.items(("scenarios",)):
        name = sheet.document.at(path)
        if isinstance(name, str):
            scenario = catalogue.scenarios.get(name)
            if scenario is None:
                hint = suggest(name, catalogue.scenarios, "the catalogue has")
                sheet.wrong(path, f"there is no scenario `{clip(name)}` in the catalogue", hint)
        else:
            scenario = _own_scenario(sheet, path, catalogue, files)
        if scenario is None:
            continue
        if scenario.name in [other.name for other in scenarios]:
            sheet.wrong(path, f"the scenario `{scenario.name}` is given twice", "remove one, or give it another name")
        scenarios.append(scenario)
    known = (*catalogue.scenarios, *(scenario.name for scenario in scenarios))
    for path, written in sheet.sound_items(OwnScenarioSchema, ("scenarios",)):
        check_against(sheet, path, written.name, written.against, known)
    return scenarios


def _scenarios_of_project(sheet: Sheet, origins: Origins) -> list[Scenario]:
    """The scenarios of redline.yaml; empty after noting that no revision is compared."""
    servers = sheet.sound_items(ServerSchema, ("servers",))
    revision = next((path for path, written in servers if written.revision is not None), None)
    if revision is not None:
        project = noted(sheet, (*revision, "revision"), origins.project)
        return list(project.scenarios) if project else []
    if isinstance(sheet.document.value, dict):
        hint = "add it, such as `scenarios: [SimpleGet]` or `scenarios: [{name: Root, get: /}]`"
        sheet.wrong(("scenarios",), "`scenarios` is missing", hint, once=True)
    return []


def _own_scenario(sheet: Sheet, path: Path, catalogue: Catalogue, files: Files) -> Scenario | None:
    written = sheet.sound(OwnScenarioSchema, path)
    if written is None:
        return None
    if written.name in catalogue.scenarios:
        message = f"the catalogue has a scenario `{written.name}` already"
        sheet.wrong((*path, "name"), message, "give yours another name, to keep results apart")
    return read_scenario(sheet, path, written.name, written, files)


def _check_scenarios(sheet: Sheet, variants: list[Variant]) -> None:
    """Note options that scenarios need but no server of the suite has, and headers that a server cannot be sent."""
    known = tuple(dict.fromkeys(name for variant in variants for name in variant.options))
    for path, written in sheet.sound_items(OwnScenarioSchema, ("scenarios",)):
        for option in written.requires:
            if variants and option not in known:
                message = f"no server of this suite has an option `{clip(option)}`"
                sheet.wrong((*path, "requires", option), message, suggest(option, known, "their options"), key=True)
        _check_http2(sheet, path, written, variants)


def _check_http2(sheet: Sheet, path: Path, written: OwnScenarioSchema, variants: list[Variant]) -> None:
    """Note headers that HTTP/2 forbids, if a server of the suite has `http: 2`."""
    if not any(variant.http == "2" for variant in variants):
        return
    requests = [(path, written.headers)]
    requests += [((*path, "requests", index), entry.headers) for index, entry in enumerate(written.requests)]
    for key in ("once", "steps") if written.journey else ():
        steps = enumerate(getattr(written.journey, key))
        requests += [((*path, "journey", key, index), step.headers) for index, step in steps]
    for where, headers in requests:
        for name, value in headers.items():
            if http2_forbids(name, value):
                message = (
                    f"HTTP/2 forbids `{name}` (RFC 9113, section 8.2.2), and this suite has a server with `http: 2`"
                )
                sheet.wrong((*where, "headers", name), message, "remove it", key=True)
