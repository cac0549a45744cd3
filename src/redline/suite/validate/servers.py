"""Resolve an item of `servers`: variants of a catalogue server, or a user's server. Pure."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import PurePath
from posixpath import normpath

from redline.errors import UsageError, WrongValueError
from redline.lazily import dataclass
from redline.model import AttachedServer, Leg, Request, Route, Scenario, ServerEntry, Tls, Variant
from redline.model.catalogue import JDK, certificates, has_tls, http_of, leg_of, sha256_of
from redline.model.variant import DIRECT
from redline.model.way import Access, ClientCertificate
from redline.quantities import clip
from redline.schema.document import Path
from redline.schema.places import read_place, read_proxy
from redline.schema.server import option_values
from redline.schema.suite import ServerSchema
from redline.schema.way import TlsSchema
from redline.suite.catalogue import Catalogue
from redline.suite.project import Origins, Own, ready_of, setup_of
from redline.suite.urls import as_url, base_of, is_like_a_url, is_secure, is_url, is_websocket, read_url
from redline.suite.validate.checking import Sheet, suggest
from redline.suite.validate.options import axes_of, check_jvm, check_option, flag_sets, jvm_axes
from redline.suite.validate.referenced_files import Files, noted
from redline.suite.validate.routes import Routes, direct_leg, places_of, routes_of
from redline.wording import advice

_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")


@dataclass(frozen=True)
class Names:
    """Names that an item of `servers` can refer to: servers and proxies of the catalogue, files, routes, revisions.

    `asked` are the scenarios: a user's server is ready when it answers the first.
    """

    catalogue: Catalogue
    files: Files
    routes: Routes
    origins: Origins
    asked: tuple[Scenario, ...]


def read_variants(sheet: Sheet, names: Names) -> list[Variant]:
    """All variants of `servers`, after noting their problems."""
    variants: dict[str, Variant] = {}
    for path, written in sheet.sound_items(ServerSchema, ("servers",)):
        for variant in _expanded(sheet, path, written, names):
            slug = variant.slug
            if slug in variants:
                hint = "give both a `name`" if variant.is_own else "remove one"
                sheet.wrong(path, f"`{slug}` is given twice in `servers`", hint)
            else:
                variants[slug] = variant
    check_jvm(sheet, names.catalogue)
    return list(variants.values())


def read_ceiling(sheet: Sheet, names: Names) -> Variant | None:
    """The server under `ceiling`, if any."""
    written = sheet.sound(ServerSchema, ("ceiling",))
    if written is None:
        return None
    variants = _expanded(sheet, ("ceiling",), written, names)
    if len(variants) > 1:
        sheet.wrong(("ceiling",), "a ceiling is one server, not an axis", "give its route and each option one value")
    return variants[0] if variants else None


def _expanded(sheet: Sheet, path: Path, written: ServerSchema, names: Names) -> list[Variant]:
    if written.url is not None:
        return _running(sheet, path, written, written.url, names)
    if written.use is not None:
        return _used(sheet, path, written, written.use, names)
    return _own(sheet, path, written, names)


def _used(sheet: Sheet, path: Path, written: ServerSchema, use: str, names: Names) -> list[Variant]:
    """The server of this name in redline.yaml, which takes precedence over the catalogue's; empty after a problem.

    A redline.yaml that cannot be read is an error only if the suite may mean a server of it.
    """
    try:
        own = names.origins.servers().get(use)
    except UsageError:
        if use not in names.catalogue.servers:
            noted(sheet, path, names.origins.servers)
            return []
        own = None
    if own is not None:
        return _in_place(sheet, path, written, own, names)
    return _catalogued(sheet, path, written, use, names)


def _in_place(sheet: Sheet, path: Path, written: ServerSchema, own: ServerSchema, names: Names) -> list[Variant]:
    """A server of redline.yaml as the suite reaches it; empty after noting a problem."""
    known_before = len(sheet.problems)
    for key in sorted(written.model_fields_set - {"use", "http", "tls", "route"}):
        shown = ServerSchema.model_fields[key].alias or key
        sheet.wrong((*path, shown), f"`{own.name}` is a server of redline.yaml, and cannot have `{shown}`", "remove it")
    if len(sheet.problems) > known_before:
        return []
    values = {key: getattr(own, key) for key in own.model_fields_set}
    values |= {key: getattr(written, key) for key in written.model_fields_set - {"use"}}
    others = {name: entry for name, entry in names.catalogue.servers.items() if name != own.name}
    hidden = replace(names, catalogue=Catalogue(servers=others, scenarios=names.catalogue.scenarios))
    return _expanded(sheet, path, ServerSchema(**values), hidden)


def _catalogued(sheet: Sheet, path: Path, written: ServerSchema, use: str, names: Names) -> list[Variant]:
    """Every combination of the written routes, places, options and flags; empty after noting a problem."""
    by_name = sheet.document.at(path) == use
    entry = names.catalogue.servers.get(use)
    if entry is None:
        hint = suggest(use, names.catalogue.servers, "the catalogue has")
        where = path if by_name else (*path, "use")
        sheet.wrong(where, f"there is no server `{clip(use)}` in the catalogue", hint)
        return []
    known_before = len(sheet.problems)
    for name, values in written.options.items():
        check_option(sheet, (*path, "with", name), entry, name, values)
    chosen = routes_of(sheet, path, entry, written, names.routes, names.catalogue)
    places = places_of(sheet, path, written)
    settings = _tls(sheet, path, written, names) if written.tls else Tls()
    fronts = [_front(entry, written, route) for route in chosen]
    _check_tls(sheet, path, written, entry.name, [leg for _, leg in fronts])
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


def _own(sheet: Sheet, path: Path, written: ServerSchema, names: Names) -> list[Variant]:
    """A user's server, except by URL, once for each route to it; empty after noting a problem."""
    known_before = len(sheet.problems)
    name = _own_name(sheet, path, written, names.catalogue)
    chosen = routes_of(sheet, path, None, written, names.routes, names.catalogue)
    direct = leg_of(written.http, tls=written.tls is not None)
    legs = [(route.legs[0], route.legs[-1]) if route else (direct, direct) for route in chosen]
    settings = _tls(sheet, path, written, names) if written.tls else Tls()
    _check_tls(sheet, path, written, name, [front for front, _ in legs])
    _check_settings(sheet, path, written)
    made = _entries(sheet, path, written, names, name)
    if made is None or len(sheet.problems) > known_before:
        return []
    fronts = [route.hops[0].catalogued if route and route.hops else None for route in chosen]
    return [
        Variant(
            entry=made(served),
            options=dict(zip(written.options, values, strict=True)),
            http=http_of(leg),
            tls=_served_by(settings, front) if has_tls(leg) else None,
            route=route,
        )
        for route, front, (leg, served) in zip(chosen, fronts, legs, strict=True)
        for values in product(*written.options.values())
    ]


def _check_settings(sheet: Sheet, path: Path, written: ServerSchema) -> None:
    """Note problems of what a launcher of another package is given: all but the first values are in file names."""
    for name, values in written.options.items():
        where = (*path, "with", name)
        if name == JDK:
            sheet.wrong(where, "`jdk` is an option of the catalogue's servers", "give it another name", key=True)
        if len(values) > 1:
            try:
                option_values(values)
            except WrongValueError as error:
                sheet.wrong(where, error.message, error.hint)


def _entries(
    sheet: Sheet, path: Path, written: ServerSchema, names: Names, name: str
) -> Callable[[Leg], ServerEntry] | None:
    """A function that makes the entry of a server for a leg; None after noting a problem."""
    if written.revision is None:
        own = Own(
            command=written.command or "",
            image=written.own_image,
            compose=written.own_service(names.origins.folder),
            launcher=written.launcher,
            settings=written.options,
            folder=normpath(PurePath(names.origins.folder) / (written.folder or ".")),
            setup=setup_of(written),
            runtime=written.runtime,
            ready=written.ready,
            stop=written.stop,
        )
        return partial(own.entry, name, names.asked or (Scenario(name="root", request=Request()),))
    where = (*path, "revision")
    checkout = noted(sheet, where, partial(names.origins.checkout, written.revision))
    project = noted(sheet, where, names.origins.project) if checkout else None
    return partial(project.server, name, checkout=checkout) if project else None


def _own_name(sheet: Sheet, path: Path, written: ServerSchema, catalogue: Catalogue) -> str:
    name = written.name or _UNSAFE.sub("-", written.revision or _called(written)).strip("-") or "server"
    if name in catalogue.servers:
        sheet.wrong((*path, "name"), f"the catalogue has a server `{name}` already", "give yours another name")
    return name


def _called(written: ServerSchema) -> str:
    """The program of a command, the image without its registry and tag, the service, or the launcher."""
    if written.image is not None:
        return re.split("[:@]", PurePath(written.image).name)[0]
    return written.launcher or written.service or PurePath((written.command or "").split()[0]).name


def _running(sheet: Sheet, path: Path, written: ServerSchema, url: str, names: Names) -> list[Variant]:
    """The server behind a URL; empty after noting a problem."""
    known_before, where = len(sheet.problems), (*path, "url")
    if is_like_a_url(url):
        sheet.wrong(where, f"{clip(url)} is not a URL of http:// or https://", f"write {as_url(url)}")
        return []
    read = noted(sheet, where, partial(read_url, url))
    if read is None:
        return []
    server, asked = read
    if is_websocket(url) and (other := next((it for it in names.asked if it.request.websocket is None), None)):
        usual = f"write {base_of(url)}, or load `websocket: {{path: {clip(asked)}, send: hello}}` alone"
        hint = advice("websocket", usual)
        sheet.wrong(where, f"{clip(url)} is a WebSocket, and scenario `{other.name}` loads requests", hint)
    elif asked != "/":
        hint = f"{advice('requests', 'move it to `scenarios`')}, such as `get: {clip(asked)}`"
        sheet.wrong(where, f"a server has no path, and this URL has {clip(asked)}", hint)
    way = _access_of(sheet, path, written, server)
    has_tls_ = is_url(url) and is_secure(url)
    chosen = _routes_to_running(sheet, path, written, names, secure=has_tls_)
    fronts = [route.legs[0] if route else leg_of(written.http, tls=has_tls_) for route in chosen]
    _check_tls(sheet, path, written, clip(url), fronts)
    settings = _tls(sheet, path, written, names) if any(map(has_tls, fronts)) else Tls()
    if len(sheet.problems) > known_before:
        return []
    scenarios = names.asked or (Scenario(name="root", request=Request()),)
    return [
        Variant(
            entry=AttachedServer(
                host=server.host,
                port=server.port,
                label=written.name or "",
                ready=None if route is None else ready_of(scenarios),
                way=way,
            ),
            http=http_of(leg),
            tls=_served_by(settings, route.hops[0].catalogued if route and route.hops else None)
            if has_tls(leg)
            else None,
            route=route,
        )
        for route, leg in zip(chosen, fronts, strict=True)
    ]


def _routes_to_running(
    sheet: Sheet, path: Path, written: ServerSchema, names: Names, *, secure: bool
) -> list[Route | None]:
    """The routes to the server behind a URL; problems are noted."""
    if secure:
        if written.route != [DIRECT]:
            message = "a server behind https:// has no route: no proxy would know its certificate"
            sheet.wrong((*path, "route"), message, "give its address of http://, or the command that starts it")
        return [None]
    chosen = routes_of(sheet, path, None, written, names.routes, names.catalogue)
    for route in filter(None, chosen):
        if has_tls(route.legs[-1]):
            message = f"the last leg of the route `{route.name}` is {route.legs[-1]}, and the URL is of http://"
            sheet.wrong((*path, "route"), message, "write `h1` or `h2c` as its last leg")
    return chosen


def _access_of(sheet: Sheet, path: Path, written: ServerSchema, server: AttachedServer) -> Access:
    """How connections reach the server behind a URL; problems are noted."""
    connect = tuple(map(read_place, written.connect or ()))
    if connect and server.way.connect:
        sheet.wrong((*path, "connect"), "the URL names the Unix socket already", "remove `connect`")
    way = Access(
        connect=connect or server.way.connect,
        addresses=written.addresses,
        sources=tuple(written.sources or ()),
        proxy=read_proxy(written.proxy) if written.proxy is not None else None,
    )
    if way.proxy is not None:
        _check_tunnel(sheet, path, way)
    if way.socket and (way.sources or way.addresses == "all"):
        key = "sources" if way.sources else "addresses"
        sheet.wrong((*path, key), "a Unix socket has no addresses", f"remove `{key}`")
    if way != Access() and written.route != [DIRECT]:
        key = (
            "url" if server.way.connect else next(key for key in _OF_WAY if getattr(way, key) != getattr(Access(), key))
        )
        message = "the proxies of a route reach a server by the host and port of its URL alone"
        sheet.wrong((*path, key), message, f"remove `{key}`, or `route`")
    return way


_OF_WAY = ("connect", "addresses", "sources", "proxy")


def _check_tunnel(sheet: Sheet, path: Path, way: Access) -> None:
    """Note what cannot be reached through a proxy, which looks up names itself."""
    for key, is_given, message in (
        ("proxy", way.socket, "a proxy opens tunnels to a host and a port, and not to a Unix socket"),
        (
            "connect",
            not way.socket and len(way.connect) > 1,
            "a tunnel of a proxy leads to one place, and not to several",
        ),
        ("addresses", way.addresses == "all", "the proxy looks up the server's name, and takes one of its addresses"),
    ):
        if is_given:
            sheet.wrong((*path, key), message, f"remove `{key}`{'' if key == 'proxy' else ', or `proxy`'}")


def _check_tls(sheet: Sheet, path: Path, written: ServerSchema, name: str, fronts: list[Leg]) -> None:
    if written.tls is not None and fronts and not any(map(has_tls, fronts)):
        sheet.wrong((*path, "tls"), f"{name} does not serve TLS", "remove `tls`", key=True)


def _front(entry: ServerEntry, written: ServerSchema, route: Route | None) -> tuple[ServerEntry, Leg]:
    """The entry that answers the load, of the server or a proxy, and the leg to it."""
    if route is None:
        return entry, direct_leg(entry, written.http)
    return route.hops[0].catalogued if route.hops else entry, route.legs[0]


def _served_by(settings: Tls, entry: ServerEntry | None) -> Tls:
    """The TLS settings, with the name in the certificate of the answering server or proxy."""
    served = entry.tls.server_name if entry and entry.tls else None
    return settings.named(settings.server_name or served)


def _tls(sheet: Sheet, path: Path, written: ServerSchema, names: Names) -> Tls:
    """The TLS settings as written."""
    files = names.files
    settings, where = written.tls or TlsSchema(), (*path, "tls")
    ca = settings.ca
    ca_pem = noted(sheet, (*where, "ca"), lambda: certificates(files.text(ca))) if ca else None
    if ca_pem == "":
        sheet.wrong((*where, "ca"), f"{settings.ca} contains no certificate", "name a PEM file")
    return Tls(
        ca_pem=ca_pem,
        insecure=settings.insecure,
        server_name=settings.server_name,
        versions=tuple(dict.fromkeys(settings.versions)),
        resumption=settings.resumption,
        ciphers=tuple(dict.fromkeys(settings.ciphers)),
        cert=_certificate(sheet, where, settings, names) if settings.cert else None,
    )


def _certificate(sheet: Sheet, where: Path, settings: TlsSchema, names: Names) -> ClientCertificate | None:
    """The client's certificate, by its files; None after noting a problem."""
    file, key = settings.cert or "", settings.key or settings.cert or ""
    pem = noted(sheet, (*where, "cert"), lambda: names.files.text(file))
    key_is_there = noted(sheet, (*where, "key" if settings.key else "cert"), lambda: names.files.text(key))
    if pem is None or key_is_there is None:
        return None
    digest = sha256_of(pem)
    if digest is None:
        sheet.wrong(
            (*where, "cert"), f"{file} contains no certificate", "name a PEM file with the client's certificate"
        )
        return None
    return ClientCertificate(file=names.files.place(file), key_file=names.files.place(key), sha256=digest)
