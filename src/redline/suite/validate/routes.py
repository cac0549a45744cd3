"""Resolve the routes of a suite, legs and proxies between them, against the catalogue. Pure."""

from collections.abc import Mapping
from typing import get_args

from redline.model import Container, HttpVersion, Leg, Route, ServerEntry, Tls, Variant
from redline.model.catalogue import has_tls, http_of, leg_of
from redline.model.variant import DIRECT, MOST_HOPS
from redline.quantities import clip
from redline.schema.container import ContainerSchema, PlacedSchema
from redline.schema.document import Path
from redline.schema.suite import HopSchema, RouteItem, ServerSchema
from redline.suite.catalogue import Catalogue
from redline.suite.validate.checking import Sheet, suggest
from redline.suite.validate.options import check_option

LEGS: tuple[Leg, ...] = get_args(Leg)
_FORM = "alternate legs and proxies, with a leg at both ends: `nginx: [h2+tls, proxy.nginx, h1]`"

Routes = Mapping[str, Route | None]
"""Routes by name; None for a route whose problems are noted."""


def read_routes(sheet: Sheet, catalogue: Catalogue) -> Routes:
    """The routes that the suite defines, without `direct`."""
    routes: dict[str, Route | None] = {}
    for path in sheet.items(("routes",)):
        written = sheet.sound(list[RouteItem], path)
        known_before = len(sheet.problems)
        if path[-1] == DIRECT:
            sheet.wrong(path, "`direct` is predefined: the load goes to the server", "give it another name", key=True)
        route = _route(sheet, path, written, catalogue) if written else None
        routes[str(path[-1])] = route if len(sheet.problems) == known_before else None
    return routes


def direct_leg(entry: ServerEntry, http: str) -> Leg:
    """The leg of a server without a route for this version of HTTP, plain if possible; or else its first leg."""
    fitting = [leg for leg in entry.serves if http_of(leg) == http]
    return next((leg for leg in fitting if not has_tls(leg)), (fitting or entry.serves)[0])


def routes_of(  # noqa: PLR0913, PLR0917 - of what, as it is written where, and what it may name
    sheet: Sheet, path: Path, entry: ServerEntry | None, written: ServerSchema, routes: Routes, catalogue: Catalogue
) -> list[Route | None]:
    """The routes of an item of `servers`, None for `direct`; invalid routes are noted and left out.

    A server defined in place has no entry yet, and serves whatever its route asks for. The name of a proxy is a route
    through it, with the protocol of the direct route on both sides.
    """
    chosen: list[Route | None] = []
    if entry is not None and entry.kind == "proxy":
        hint = "name it in a route, in front of a server: `nginx: [h1, proxy.nginx, h1]`"
        by_name = sheet.document.at(path) == entry.name
        sheet.wrong(path if by_name else (*path, "use"), f"{entry.name} is a proxy, not a server", hint)
        return chosen
    http = written.http if "http" in written.model_fields_set else None
    is_axis = isinstance(sheet.document.at((*path, "route")), list) if written.route != [DIRECT] else False
    for index, name in enumerate(written.route):
        where: Path = (*path, "route", index) if is_axis else (*path, "route")
        if name in written.route[:index]:
            sheet.wrong(where, f"`{clip(name)}` is given twice", "remove one")
        elif name == DIRECT:
            if entry is not None:
                _check_direct(sheet, path, entry, written)
            chosen.append(None)
        else:
            leg = direct_leg(entry, written.http) if entry else leg_of(written.http, tls=written.tls is not None)
            route = routes[name] if name in routes else _through(sheet, where, name, leg, routes, catalogue)
            if route is not None and _fits(sheet, where, entry, route, http):
                chosen.append(route)
    return chosen


def _through(  # noqa: PLR0913, PLR0917 - which proxy, of what, and where it is written
    sheet: Sheet, where: Path, name: str, leg: Leg, routes: Routes, catalogue: Catalogue
) -> Route | None:
    """The route through a proxy by name, such as `nginx` or `proxy.nginx`; None after noting a problem."""
    proxies = [entry.name for entry in catalogue.servers.values() if entry.kind == "proxy"]
    meant = [proxy for proxy in proxies if name in {proxy, proxy.rpartition(".")[2]}]
    if len(meant) > 1:
        sheet.wrong(where, f"several proxies have the name `{name}`", f"write one of {', '.join(meant)}")
        return None
    if not meant:
        short = dict.fromkeys(proxy.rpartition(".")[2] for proxy in proxies)
        hint = suggest(name, (DIRECT, *routes, *short), "there is")
        sheet.wrong(where, f"there is no route and no proxy `{clip(name)}`", hint)
        return None
    hop = _hop(sheet, where, meant[0], [leg, leg], catalogue)
    return None if hop is None else Route(name=name, legs=(leg, leg), hops=(hop,))


def _check_direct(sheet: Sheet, path: Path, entry: ServerEntry, written: ServerSchema) -> None:
    if http_of(direct_leg(entry, written.http)) != written.http:
        supported = " and ".join(f"HTTP/{version}" for version in dict.fromkeys(map(http_of, entry.serves)))
        sheet.wrong((*path, "http"), f"{entry.name} does not speak HTTP/{written.http}", f"it speaks {supported}")


def _fits(sheet: Sheet, where: Path, entry: ServerEntry | None, route: Route, http: HttpVersion | None) -> bool:
    """Whether a route with this `http` can reach a server; a problem is noted."""
    known_before = len(sheet.problems)
    if entry is not None and route.legs[-1] not in entry.serves:
        message = f"{entry.name} does not serve {route.legs[-1]}, the last leg of the route `{route.name}`"
        sheet.wrong(where, message, f"it serves {', '.join(entry.serves)}")
    if http is not None and http_of(route.legs[0]) != http:
        message = f"`http: {http}` contradicts the route `{route.name}`, whose first leg is {route.legs[0]}"
        sheet.wrong(where, message, "remove `http`: a route says the protocol of each leg")
    return len(sheet.problems) == known_before


def _route(sheet: Sheet, path: Path, items: list[str | HopSchema], catalogue: Catalogue) -> Route | None:
    """Resolve a route; None after noting every mistake."""
    if len(items) % 2 == 0:
        sheet.wrong(path, "a leg is missing: a route begins and ends with a leg", _FORM)
        return None
    if len(items) // 2 > MOST_HOPS:
        sheet.wrong(path, f"a route has at most {MOST_HOPS} proxies", "take some out")
        return None
    legs = [_leg(sheet, (*path, index), items[index], catalogue) for index in range(0, len(items), 2)]
    hops = [
        _hop(sheet, (*path, index), items[index], legs[index // 2 : index // 2 + 2], catalogue)
        for index in range(1, len(items), 2)
    ]
    sound_legs, sound_hops = [leg for leg in legs if leg], [hop for hop in hops if hop]
    if len(sound_legs) < len(legs) or len(sound_hops) < len(hops):
        return None
    return Route(name=str(path[-1]), legs=tuple(sound_legs), hops=tuple(sound_hops))


def _leg(sheet: Sheet, path: Path, item: str | HopSchema, catalogue: Catalogue) -> Leg | None:
    if (leg := next((leg for leg in LEGS if leg == item), None)) is not None:
        return leg
    name = item if isinstance(item, str) else item.use
    if name in catalogue.servers:
        sheet.wrong(path, f"there is no leg in front of {name}", _FORM)
    else:
        sheet.wrong(path, f"`{clip(name)}` is not a leg", suggest(name, LEGS, "legs are"))
    return None


def _hop(
    sheet: Sheet, path: Path, item: str | HopSchema, around: list[Leg | None], catalogue: Catalogue
) -> Variant | None:
    """A proxy with the legs in front of it and behind it; None after noting a problem."""
    written = HopSchema(use=item) if isinstance(item, str) else item
    where = path if isinstance(item, str) else (*path, "use")
    entry = catalogue.servers.get(written.use)
    if entry is None or entry.kind != "proxy":
        known = (name for name, other in catalogue.servers.items() if other.kind == "proxy")
        hint = suggest(written.use, known, "the catalogue has")
        message = f"there is no proxy `{clip(written.use)}` in the catalogue"
        if written.use in LEGS:
            message, hint = f"`{written.use}` follows another leg: a proxy is missing between the two", _FORM
        elif entry is not None:
            message = f"{entry.name} is a server, not a proxy"
        sheet.wrong(where, message, hint)
        return None
    known_before = len(sheet.problems)
    for name, value in written.options.items():
        check_option(sheet, (*path, "with", name), entry, name, [value])
    front, behind = around
    (container, *_) = places_of(sheet, path, written, hop=True)
    if front is not None and front not in entry.serves:
        sheet.wrong(where, f"{entry.name} does not serve {front}", f"it serves {', '.join(entry.serves)}")
    if behind is not None and behind not in entry.upstream:
        message = f"{entry.name} does not speak {behind} to the server behind it"
        sheet.wrong(where, message, f"it speaks {', '.join(entry.upstream)}")
    if len(sheet.problems) > known_before or front is None:
        return None
    return Variant(
        entry=entry,
        options={name: written.options.get(name, option.default) for name, option in entry.options.items()},
        http=http_of(front),
        tls=Tls(server_name=entry.tls.server_name if entry.tls else None) if has_tls(front) else None,
        container=container,
    )


def places_of(sheet: Sheet, path: Path, written: PlacedSchema, *, hop: bool = False) -> list[Container | None]:
    """The places where an item of `servers`, or a hop, runs: None for a process. Note problems."""
    is_axis = isinstance(sheet.document.at((*path, "in")), list) if "places" in written.model_fields_set else False
    settings = written.container or ContainerSchema()
    if written.container is not None and "container" not in written.places:
        sheet.wrong((*path, "container"), "this does not run in a container", "add `in: container`", key=True)
    if hop and is_axis:
        sheet.wrong((*path, "in"), "a hop runs in one place", "write another route for the other place")
    if hop and settings.network == "published":
        message = "a proxy reaches its upstream through the network of the machine"
        sheet.wrong((*path, "container", "network"), message, "remove `network`")
    for index, place in enumerate(written.places):
        if place in written.places[:index]:
            sheet.wrong((*path, "in", index), f"`{place}` is given twice", "remove one")
    return [settings.container() if place == "container" else None for place in written.places]
