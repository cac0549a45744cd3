"""Follow redirects once before a load, so that the load asks for what they lead to."""

from dataclasses import replace
from http import HTTPStatus
from urllib.parse import urljoin

from rich.console import Console

from redline.asking.asks import LoadAsk
from redline.asking.load import load_suite, starts_server
from redline.cli.targets import check_targets
from redline.driving.checks import Checked, checking
from redline.driving.engine_process import find_engine
from redline.driving.protocol import check
from redline.errors import UsageError
from redline.model import AttachedServer, Cell
from redline.model.catalogue import passed_names
from redline.model.template import as_literal
from redline.ports import Endpoint
from redline.suite import make_plan
from redline.suite.secret_names import is_secret_header
from redline.suite.urls import UNIX, is_secure, is_url, read_url

_MOST = 10
_REDIRECTS = (
    HTTPStatus.MOVED_PERMANENTLY,
    HTTPStatus.FOUND,
    HTTPStatus.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT,
)
_METHODS = ("GET", "HEAD")


def followed(ask: LoadAsk, console: Console) -> LoadAsk:
    """Return the load of the URL to which redirects lead, and say so. Raises UsageError and DriveError."""
    if ask.server is None:
        raise UsageError("--follow: no URL is given", hint="give the URL, or write what is requested into redline.yaml")
    if starts_server(ask):
        message = f"--follow: the server of `{ask.server}` does not run yet"
        raise UsageError(message, hint="leave it out, and give the path that is requested: --path")
    for _ in range(_MOST):
        suite, _ = load_suite(ask)
        check_targets(suite, ask.target_is_mine)
        (cell,) = make_plan(suite).cells.values()
        answer = _answer_of(cell)
        location = answer.header("location")
        if answer.status not in _REDIRECTS or not location:
            return ask
        url = _next(str(ask.server), location, answer.status, has_secrets=_has_secrets(cell))
        console.print(f"{answer.status}: {ask.server} leads to {url}", highlight=False, markup=False, soft_wrap=True)
        ask = replace(ask, server=url)
    raise UsageError(f"--follow: more than {_MOST} redirects, at last to {ask.server}", hint="see them with `curl -vL`")


def _answer_of(cell: Cell) -> Checked:
    """Send the request once. Raises UsageError for one that is not to be sent twice, and DriveError."""
    entry, request = cell.variant.entry, cell.scenario.request
    assert isinstance(entry, AttachedServer), "a URL names it"
    if request.method not in _METHODS or cell.scenario.others or request.websocket:
        what = "several requests" if cell.scenario.others else request.line.partition(" ")[0]
        hint = "leave out --follow, and give the final URL"
        raise UsageError(f"--follow is for a single GET or HEAD, and not for {what}", hint=hint)
    endpoint = Endpoint(entry.host, entry.port, way=entry.way)
    with checking(find_engine()) as checks:
        picks = cell.scenario.picks
        asked = check(cell.variant, endpoint, request, picks, timeout_ns=cell.timeout_ns, keep_bytes=0)
        return checks.ask(asked)


def _has_secrets(cell: Cell) -> bool:
    """Whether the headers of the request have what only its server should get."""
    lines = [line for request in cell.scenario.requests for line in request.header_lines]
    signs_in = any(request.auth is not None for request in cell.scenario.requests)
    return signs_in or any(is_secret_header(name, value) or passed_names(value) for name, value in lines)


def _next(url: str, location: str, status: int, *, has_secrets: bool) -> str:
    """The URL of a redirect on the same host, or at the same socket.

    Raises UsageError for another host, for a URL that leaves TLS, and with secrets for another port too.
    """
    scheme, _, rest = (url if is_url(url) else f"http://{url}").partition("://")
    socket, slash, path = rest.partition("/") if scheme.lower() == UNIX else ("", "", "")
    asked = f"http://localhost{slash}{path}" if socket else f"{scheme}://{rest}"
    meant = urljoin(asked, as_literal(location))
    server, target = read_url(meant)
    before = read_url(asked)[0]
    if socket and server == before and not is_secure(meant):
        return f"{scheme}://{socket}{target}"
    if socket or server.host.lower() != before.host.lower():
        message = f"--follow: {url} leads to another host ({status} to {meant})"
        raise UsageError(message, hint="if that is what you mean to load, give its URL")
    if is_secure(url) and not is_secure(meant):
        message = f"--follow: {url} leads to a URL without TLS ({status} to {meant})"
        raise UsageError(message, hint="headers would be sent in plain text; if you mean that, give the URL")
    if has_secrets and server.port != before.port:
        message = f"--follow: {url} leads to another port, which would get the sign-in ({status} to {meant})"
        raise UsageError(message, hint="if that is what you mean, give its URL")
    return meant
