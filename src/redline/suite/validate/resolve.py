"""A suite's text and a catalogue -> Suite. Pure: no disk, and every problem of the file at once."""

import re
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import PurePath

from redline.errors import Problem
from redline.model import AutoTrials, EngineMode, Leg, Load, Route, Scenario, ServerEntry, Suite, Tls, Variant
from redline.model.catalogue import certificates, has_tls, http_of
from redline.quantities import clip, did_you_mean
from redline.suite.catalogue import Catalogue, check_against
from redline.suite.schema.document import Path, parse_document
from redline.suite.schema.scenario import http2_forbids
from redline.suite.schema.suite import AutoSchema, OwnScenarioSchema, ServerSchema, SuiteSchema, TlsSchema
from redline.suite.screening import screened
from redline.suite.validate.baselines import read_baselines
from redline.suite.validate.checking import Sheet, raise_all
from redline.suite.validate.loads import Loads, check_loads, read_warm_up
from redline.suite.validate.options import axes_of, check_jvm, check_option, flag_sets, jvm_axes
from redline.suite.validate.overrides import Overrides, apply_overrides, quickened
from redline.suite.validate.referenced_files import Files, no_files, noted, picks_of, read_times
from redline.suite.validate.routes import Routes, direct_leg, places_of, read_routes, routes_of

MOST_TRIALS_IN_ALL = 100_000


@dataclass(frozen=True)
class Names:
    """What an item of `servers` names: servers and proxies of the catalogue, files, routes of the suite."""

    catalogue: Catalogue
    files: Files
    routes: Routes


def read_suite(text: str, file: str, catalogue: Catalogue, overrides: Overrides, files: Files = no_files) -> Suite:
    """The suite of a file's text, resolved against the catalogue and overridden; `files` are those that it names.

    Raises UsageError with every problem: those of the file first, and only when there is none those of the overrides.
    """
    sheet = Sheet(parse_document(text, file), SuiteSchema, "docs/reference/suite.md")
    schema = sheet.read(SuiteSchema)
    names = Names(catalogue, files, read_routes(sheet, catalogue))
    variants = _variants(sheet, names)
    scenarios = _scenarios(sheet, catalogue, variants, files)
    replayed = _replayed(sheet, check_loads(sheet), files)
    ceiling = _ceiling(sheet, names)
    baseline, baselines = read_baselines(sheet, catalogue, variants)
    if schema is not None and schema.design != "interleaved" and schema.baseline is None:
        sheet.wrong(("design",), "a duet compares servers with a baseline, and there is none", "add `baseline`")
    sheet.raise_problems()
    assert schema is not None, "a file without problems was read"
    warmup_ns, warmup_detect = read_warm_up(schema.warmup)
    suite = Suite(
        name=_name(file),
        about=schema.about,
        variants=tuple(variants),
        baseline=baseline,
        baselines=baselines,
        ceiling=ceiling,
        scenarios=tuple(scenarios),
        loads=tuple(load.load(name, replayed.get(name, ())) for name, load in schema.loads.items()),
        warmup_ns=warmup_ns,
        warmup_detect=warmup_detect,
        warmup_by=_warmup_by(schema),
        trials=schema.trials if isinstance(schema.trials, int) else schema.trials.auto.at_most,
        auto=_auto(schema.trials),
        builds=schema.builds,
        seed=schema.seed,
        design=schema.design,
        timeout_ns=schema.timeout,
        threshold=schema.threshold,
        objectives=tuple(dict.fromkeys(each for one in schema.objective.values() for each in one)),
        objective_sets={name: one for name, one in schema.objective.items() if name},
        profile=tuple(dict.fromkeys(schema.profile)),
        engine=EngineMode.model_validate(schema.engine.model_dump()),
        load_hosts=schema.hosts.load if schema.hosts else 1,
        fit=schema.fit,
        host_retries=schema.hosts.retries if schema.hosts else 0,
    )
    if overrides.quick:
        suite = quickened(suite, schema.quick)
    changed, problems = apply_overrides(suite, overrides, catalogue)
    raise_all(problems)
    changed = screened(changed) if overrides.screen else changed
    raise_all(_too_much(changed))
    return changed


def _warmup_by(schema: SuiteSchema) -> Load | None:
    by = schema.warmup_by
    return schema.loads[by].load(by) if isinstance(by, str) else by.load if by else None


def _auto(written: int | AutoSchema) -> AutoTrials | None:
    if isinstance(written, int):
        return None
    auto = written.auto
    return AutoTrials(precision=auto.precision, at_least=auto.at_least, budget_ns=auto.budget)


def _too_much(suite: Suite) -> list[Problem]:
    trials = len(suite.variants) * len(suite.scenarios) * len(suite.loads) * suite.trials
    if trials <= MOST_TRIALS_IN_ALL:
        return []
    return [Problem(f"this suite has {trials} trials; at most {MOST_TRIALS_IN_ALL}", "write shorter axes")]


def _name(file: str) -> str:
    """The file's name without its ending, safe as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePath(file).stem).strip("-") or "suite"


def _variants(sheet: Sheet, names: Names) -> list[Variant]:
    variants: list[Variant] = []
    for path in sheet.items(("servers",)):
        written = sheet.sound(ServerSchema, path)
        for variant in _expanded(sheet, path, written, names) if written else []:
            if variant.slug in [other.slug for other in variants]:
                sheet.wrong(path, f"`{variant.slug}` is given twice in `servers`", "remove one")
            else:
                variants.append(variant)
    check_jvm(sheet, names.catalogue)
    return variants


def _expanded(sheet: Sheet, path: Path, written: ServerSchema, names: Names) -> list[Variant]:
    """Every combination of routes, places, options and flags that are written; none after noting what is wrong."""
    by_name = sheet.document.at(path) == written.use
    entry = names.catalogue.servers.get(written.use)
    if entry is None:
        known = tuple(names.catalogue.servers)
        hint = did_you_mean(written.use, known) or f"the catalogue has: {', '.join(known)}"
        where = path if by_name else (*path, "use")
        sheet.wrong(where, f"there is no server `{clip(written.use)}` in the catalogue", hint)
        return []
    known_before = len(sheet.problems)
    for name, values in written.options.items():
        check_option(sheet, (*path, "with", name), entry, name, values)
    chosen = routes_of(sheet, path, entry, written, names.routes)
    places = places_of(sheet, path, written)
    settings = _tls(sheet, path, written, names.files) if written.tls else Tls()
    fronts = [_front(entry, written, route) for route in chosen]
    if written.tls is not None and fronts and not any(has_tls(leg) for _, leg in fronts):
        sheet.wrong((*path, "tls"), f"{entry.name} does not serve TLS", "remove `tls`", key=True)
    if len(sheet.problems) > known_before:
        return []
    is_subject = path[0] == "servers"
    axes = axes_of(entry, written.options, jvm_axes(sheet) if is_subject else {})
    sets = flag_sets(sheet) if is_subject and entry.runtime == "jvm" else (None,)
    return [
        Variant(
            entry=entry,
            options=dict(zip(axes, values, strict=True)),
            http=http_of(leg),
            tls=_served_by(settings, front) if has_tls(leg) else None,
            route=route,
            container=container,
            flags=flags,
        )
        for route, (front, leg) in zip(chosen, fronts, strict=True)
        for container in places
        for values in product(*axes.values())
        for flags in sets
    ]


def _front(entry: ServerEntry, written: ServerSchema, route: Route | None) -> tuple[ServerEntry, Leg]:
    """What answers the load, the server or a proxy, and the leg to it."""
    if route is None:
        return entry, direct_leg(entry, written.http)
    return route.hops[0].catalogued if route.hops else entry, route.legs[0]


def _served_by(settings: Tls, entry: ServerEntry) -> Tls:
    """The settings of TLS, with the name in the certificate of what answers."""
    served = entry.tls.server_name if entry.tls else None
    return settings.model_copy(update={"server_name": settings.server_name or served})


def _tls(sheet: Sheet, path: Path, written: ServerSchema, files: Files) -> Tls:
    """The settings of TLS as they are written."""
    settings, where = written.tls or TlsSchema(), (*path, "tls")
    ca = settings.ca
    ca_pem = noted(sheet, (*where, "ca"), lambda: certificates(files(ca))) if ca else None
    if ca_pem == "":
        sheet.wrong((*where, "ca"), f"{settings.ca} holds no certificate", "name a PEM file")
    return Tls(
        ca_pem=ca_pem,
        insecure=settings.insecure,
        server_name=settings.server_name,
        versions=tuple(dict.fromkeys(settings.versions)),
        resumption=settings.resumption,
    )


def _replayed(sheet: Sheet, loads: Loads, files: Files) -> dict[str, tuple[int, ...]]:
    """The due times of every load whose arrivals are replayed, by the load's name."""
    found = {}
    for name, load in loads.items():
        if load and load.open and (file := load.open.replayed):
            path = ("loads", name, "open", "arrivals", "replay")
            found[name] = noted(sheet, path, partial(_times, file, files)) or ()
    return found


def _times(file: str, files: Files) -> tuple[int, ...]:
    return read_times(files(file), file)


def _scenarios(sheet: Sheet, catalogue: Catalogue, variants: list[Variant], files: Files) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for path in sheet.items(("scenarios",)):
        name = sheet.document.at(path)
        if isinstance(name, str):
            scenario = _named_scenario(sheet, path, name, catalogue)
        else:
            scenario = _own_scenario(sheet, path, catalogue, variants, files)
        if scenario is None:
            continue
        if scenario.name in [other.name for other in scenarios]:
            sheet.wrong(path, f"the scenario `{scenario.name}` is given twice", "remove one, or give it another name")
        scenarios.append(scenario)
    known = (*catalogue.scenarios, *(scenario.name for scenario in scenarios))
    for path in sheet.items(("scenarios",)):
        written = sheet.sound(OwnScenarioSchema, path)
        if written is not None:
            check_against(sheet, path, written.name, written.against, known)
    return scenarios


def _named_scenario(sheet: Sheet, path: Path, name: str, catalogue: Catalogue) -> Scenario | None:
    scenario = catalogue.scenarios.get(name)
    if scenario is None:
        known = tuple(catalogue.scenarios)
        hint = did_you_mean(name, known) or f"the catalogue has: {', '.join(known) or 'none'}"
        sheet.wrong(path, f"there is no scenario `{clip(name)}` in the catalogue", hint)
    return scenario


def _own_scenario(
    sheet: Sheet, path: Path, catalogue: Catalogue, variants: list[Variant], files: Files
) -> Scenario | None:
    written = sheet.sound(OwnScenarioSchema, path)
    if written is None:
        return None
    if written.name in catalogue.scenarios:
        message = f"the catalogue has a scenario `{written.name}` already"
        sheet.wrong((*path, "name"), message, "give yours another name, so that results cannot be mixed up")
    known = tuple(dict.fromkeys(name for variant in variants for name in variant.options))
    for option in written.requires:
        if variants and option not in known:
            hint = did_you_mean(option, known) or f"their options: {', '.join(known) or 'none'}"
            message = f"no server of this suite has an option `{clip(option)}`"
            sheet.wrong((*path, "requires", option), message, hint, key=True)
    _check_http2(sheet, path, written, variants)
    picks = picks_of(sheet, path, written.all_requests(), files)
    return None if picks is None else written.scenario(written.name, picks)


def _check_http2(sheet: Sheet, path: Path, written: OwnScenarioSchema, variants: list[Variant]) -> None:
    """Note headers that a server of the suite cannot be sent, because it has `http: 2`."""
    if not any(variant.http == "2" for variant in variants):
        return
    requests = [(path, written.headers)]
    requests += [((*path, "requests", index), one.headers) for index, one in enumerate(written.requests)]
    for where, headers in requests:
        for name, value in headers.items():
            if http2_forbids(name, value):
                message = (
                    f"HTTP/2 forbids `{name}` (RFC 9113, section 8.2.2), and this suite has a server with `http: 2`"
                )
                sheet.wrong((*where, "headers", name), message, "remove it", key=True)


def _ceiling(sheet: Sheet, names: Names) -> Variant | None:
    written = sheet.sound(ServerSchema, ("ceiling",)) if sheet.document.at(("ceiling",)) is not None else None
    if written is None:
        return None
    variants = _expanded(sheet, ("ceiling",), written, names)
    if len(variants) > 1:
        sheet.wrong(("ceiling",), "a ceiling is one server, not an axis", "give its route and each option one value")
    return variants[0] if variants else None
