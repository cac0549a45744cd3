"""Scenarios of several requests, placeholders, and expected answers; servers over TLS and HTTP/2."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.model import Body, Expected, Request, Scenario, Suite, Timestamp, Tls
from redline.model.template import first_of, for_engine, malformed, parts
from redline.schema.request import METHODS
from redline.suite import load_catalogue, load_suite
from tests.fakes.catalogues import FAMILY, SCENARIOS, SUITE, problems_of, suite_of, write_catalogue

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
SHA = hashlib.sha256(b"x").hexdigest()
UNSAMPLED = "00-00000000000000000000000000000001-0000000000000001-00"


def scenario_of(folder: Path, written: str) -> Scenario:
    return suite_of(folder, SUITE.replace("[Get]", f"[{{name: M, {written}}}]")).scenarios[0]


def test_several_requests_are_drawn_by_weight(tmp_path: Path) -> None:
    made = scenario_of(tmp_path, "requests: [{weight: 3, get: /a}, {post: /b, body: {size: 5MB, fill: text}}]")
    assert made.requests == (
        Request(weight=3, path="/a"),
        Request(method="POST", path="/b", body=Body(size=5_000_000, fill="text")),
    )
    assert Scenario.model_validate_json(made.model_dump_json()) == made


def test_a_single_request_is_stored_as_ever(tmp_path: Path) -> None:
    stored = scenario_of(tmp_path, "get: /a").model_dump()
    assert sorted(stored) == ["about", "name", "request", "requires"]
    assert sorted(stored["request"]) == ["body", "expect", "headers", "method", "path"]
    assert sorted(stored["request"]["expect"]) == ["body", "length", "status", "under_load"]


def test_a_header_may_stand_several_times(tmp_path: Path) -> None:
    made = scenario_of(tmp_path, "get: /a, headers: {Cookie: [a=1, b=2], Accept: x}")
    assert made.request.header_lines == (("Cookie", "a=1"), ("Cookie", "b=2"), ("Accept", "x"))


def test_what_is_right_can_be_a_hash_or_values_of_json(tmp_path: Path) -> None:
    made = scenario_of(tmp_path, f"get: /a, expect: {{sha256: {SHA}, json: {{/total: 3, /a/0: null, '': [x]}}}}")
    assert made.request.expect == Expected(
        sha256=SHA, json_values={"/total": 3, "/a/0": None, "": ["x"]}, under_load="hash"
    )


def test_encodings_are_accepted_by_a_header_and_the_status_is_checked_under_load(tmp_path: Path) -> None:
    written = "get: /x, accept: [gzip, br], expect: {json: {/a: 1}, under_load: status}"
    request = scenario_of(tmp_path, written).request
    assert request.headers == {"Accept-Encoding": "gzip, br"}
    assert request.expect == Expected(json_values={"/a": 1}, under_load="status")
    request = scenario_of(tmp_path, "get: /x, accept: gzip, expect: {body: a}").request
    assert request.expect == Expected(body="a", under_load="status")


def test_where_the_answer_gives_the_servers_clock(tmp_path: Path) -> None:
    field = scenario_of(tmp_path, "get: /a, timestamp: {pointer: /now, unit: ms}")
    assert field.request.timestamp == Timestamp(pointer="/now", unit="ms")
    assert field.clock_resolution_ns == 1_000_000
    assert scenario_of(tmp_path, "get: /a").clock_resolution_ns is None
    whole = scenario_of(tmp_path, "get: /a, timestamp: {pointer: body, unit: ns}")
    assert whole.request.timestamp == Timestamp(unit="ns")


def test_entries_to_pick_from_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("1\n2\n\n33\n")
    made = scenario_of(tmp_path, "get: '/a?id={pick:ids.txt}&n={seq}', headers: {X: '{pick:ids.txt}'}")
    assert made.picks == {"ids.txt": ("1", "2", "33")}


def test_a_scenario_of_the_catalogue_picks_from_files_beside_it(tmp_path: Path) -> None:
    folder = write_catalogue(tmp_path, scenarios=SCENARIOS + "  Pick: {get: '/{pick:ids.txt}'}\n")
    (folder / "ids.txt").write_text("a\nb\n")
    assert load_catalogue(folder).scenarios["Pick"].picks == {"ids.txt": ("a", "b")}


def test_every_method_has_its_key(tmp_path: Path) -> None:
    for method in METHODS:
        made = scenario_of(tmp_path, f"{method}: /a").request
        assert (made.method, made.path) == (method.upper(), "/a")


@pytest.mark.parametrize(
    ("written", "says", "hint"),
    [
        ("requests: []", "has no method", "or `requests`"),
        ("get: /a, requests: [{get: /b}]", "has get and requests", "exactly one of"),
        ("requests: [{weight: 1}]", "this request has no method", "`get: /path0`"),
        ("requests: [{get: /a, put: /a}]", "this request has get and put", "exactly one"),
        ("requests: [{get: /a, weight: 0}]", "at least 1", "how often it is drawn"),
        ("headers: {A: b}, requests: [{get: /b}]", "`headers` cannot be combined with `requests`", "in every request"),
        ("get: '/{rand:5..1}'", "`{rand:5..1}` cannot be filled in", "{rand:1..100}"),
        ("get: '/{rand:1-5}'", "`{rand:1-5}` cannot be filled in", "{rand:1..100}"),
        ("get: /a, headers: {A: '{pick:}'}", "`{pick:}` cannot be filled in", "{pick:file.txt}"),
        ("post: /a, body: '{pick :x}'", "`{pick :x}` cannot be filled in", "double the braces"),
        ("get: '/{traceparent:101%}'", "`{traceparent:101%}` cannot be filled in", "{traceparent:1%}"),
        ("get: /a, headers: {A: '{traceparent:1}'}", "`{traceparent:1}` cannot be filled in", "{traceparent:1%}"),
        ("get: '/{pick:none.txt}'", "there is no file", "has: empty.txt, signs.txt"),
        ("get: '/{pick:empty.txt}'", "empty.txt has nothing to pick from", "one entry per line"),
        ("get: '/{pick:words.txt}'", "entry 2 of words.txt cannot be part of a path", "encode it"),
        ("get: /a, headers: {A: '{pick:signs.txt}'}", "entry 1 of signs.txt cannot be part of a header", "take it out"),
        ("get: /a, expect: {sha256: abc}", "does not have the required form", "SHA-256"),
        (f"get: /a, expect: {{body: x, sha256: {SHA}}}", "say the same thing", "remove `sha256`"),
        ("get: /a, expect: {json: {total: 3}}", "does not have the required form", "JSON Pointer"),
        ("get: /a, timestamp: {pointer: now, unit: ms}", "does not have the required form", "`body`"),
        ("get: /a, timestamp: {pointer: /now, unit: m}", "must be `s`, `ms`, `us` or `ns`", "did you mean"),
        ("get: /a, accept: lzma", "must be `gzip`", "choose one of"),
        ("get: /a, accept: gzip, headers: {accept-encoding: br}", "is the header `Accept-Encoding`", "leave out"),
        ("get: /a, accept: gzip, timestamp: {pointer: /t, unit: s}", "cannot be read under load", "leave out"),
        ("get: /a, accept: gzip, expect: {json: {/a: 1}}", "so `json` is not compared", "`under_load: status`"),
        ("get: /a, accept: gzip, expect: {length: 1, under_load: length}", "so `under_load` is not", "decoded"),
        ("get: /a, accept: gzip, stream: sse", "and not decoded", "leave out `accept` or `stream`"),
        ("journey: {steps: [{get: /a, accept: gzip}]}", "and not decoded", "outside of a journey"),
        ("get: /a, timestamp: {pointer: /now}", "`unit` is missing", "`unit: ms`"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, written: str, says: str, hint: str) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "words.txt").write_text("one\ntwo words\n")
    (tmp_path / "signs.txt").write_text("ä\n")
    problems = problems_of(tmp_path, SUITE.replace("[Get]", f"[{{name: M, {written}}}]"))
    assert len(problems) == 1, problems
    assert says in problems[0].message
    assert hint in problems[0].hint


@pytest.mark.parametrize(
    ("text", "engine", "first"),
    [
        ("/a", "/a", "/a"),
        ("{seq}{rand:-5..9}{pick:f}", "{seq}{rand:-5..9}{pick:f}", "0-5one"),
        ('{"a": {"b": {seq}}}', '{{"a": {{"b": {seq}}}}}', '{"a": {"b": 0}}'),
        ("{{seq}} {sequence}", "{{seq}} {{sequence}}", "{seq} {sequence}"),
        ("{traceparent}", "{traceparent}", UNSAMPLED),
        ("{traceparent:0.1%}{pick:f}", "{traceparent:0.1%}{pick:f}", f"{UNSAMPLED}one"),
        ("{{traceparent}} {traceparents}", "{{traceparent}} {{traceparents}}", "{traceparent} {traceparents}"),
    ],
)
def test_placeholders(text: str, engine: str, first: str) -> None:
    assert malformed(text) is None
    assert for_engine(text) == engine
    assert first_of(text, {"f": ("one", "two")}) == first


def test_which_requests_begin_a_trace(tmp_path: Path) -> None:
    for traced in ("get: '/{traceparent}'", "get: /a, headers: {traceparent: '{traceparent:1%}'}"):
        assert scenario_of(tmp_path, traced).is_traced
    body = "requests: [{get: /a}, {post: /b, json: {trace: '{traceparent}'}}]"
    assert scenario_of(tmp_path, body).is_traced
    assert not scenario_of(tmp_path, "get: '/{seq}', headers: {traceparent: '{{traceparent}}'}").is_traced


@given(st.text(alphabet="{}seqrandpicktv:%.19 /", max_size=40))
def test_a_text_without_placeholders_is_sent_as_it_is(text: str) -> None:
    literal = "".join(part for part in parts(text) if isinstance(part, str))
    if all(isinstance(part, str) for part in parts(text)):
        assert first_of(text, {}) == literal
        assert for_engine(text).replace("{{", "{").replace("}}", "}") == literal


TLS_FAMILY = FAMILY.replace(
    "runtime: native", "runtime: native\nhttp: [1.1, 2]\ntls: {ca: certs/ca.pem, server_name: localhost}"
)


def suite_over_tls(folder: Path, servers: str) -> Suite:
    file = folder / "some.yaml"
    file.write_text(SUITE.replace("[fam.plain, fam.layered]", servers))
    return load_suite(file, load_catalogue(write_catalogue(folder / "catalogue", fam=TLS_FAMILY)))


def test_a_server_that_serves_tls_is_asked_over_tls(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    asked = "{ca: ca.pem, insecure: true, server_name: me, versions: [1.3], resumption: false}"
    suite = suite_over_tls(tmp_path, f"[fam.plain, {{use: fam.plain, http: 2, tls: {asked}}}]")
    assert [variant.slug for variant in suite.variants] == [
        "fam.plain",
        "fam.plain+http2+insecure+tls1.3+no-resumption",
    ]
    plain, other = suite.variants
    assert (plain.http, plain.tls) == ("1.1", Tls(server_name="localhost"))
    assert other.http == "2"
    assert other.tls == Tls(
        ca_pem=CERTIFICATE,
        insecure=True,
        server_name="me",
        versions=("1.3",),
        resumption=False,
    )


@pytest.mark.parametrize(
    ("server", "says", "hint"),
    [
        ("{use: fam.plain, http: 2}", "fam.plain does not speak HTTP/2", "it speaks HTTP/1.1"),
        ("{use: fam.plain, http: 3}", "must be `1.1` or `2`", "choose one of"),
        ("{use: fam.plain, tls: {}}", "fam.plain does not serve TLS", "remove `tls`"),
        ("{use: fam.plain, tls: {versions: []}}", "must have at least 1", "negotiated"),
        ("{use: fam.plain, tls: {versions: [1.1]}}", "must be `1.2` or `1.3`", "did you mean"),
    ],
)
def test_what_cannot_be_asked_of_a_server(tmp_path: Path, server: str, says: str, hint: str) -> None:
    (problem,) = problems_of(tmp_path, SUITE.replace("[fam.plain, fam.layered]", f"[{server}]"))
    assert says in problem.message
    assert hint in problem.hint


def test_a_scenario_may_be_compared_with_another(tmp_path: Path) -> None:
    text = SUITE.replace(
        "[Get]",
        "[Get, {name: Sum, get: /sum, against: Get}, {name: Big, get: /big, against: Later}, {name: Later, get: /}]",
    )
    assert [scenario.against for scenario in suite_of(tmp_path, text).scenarios] == [None, "Get", "Later", None]


@pytest.mark.parametrize(
    ("against", "says", "hint"),
    [
        ("Mine", "`Mine` is compared with itself", "name a simpler scenario"),
        ("Gat", "no scenario `Gat` to compare it with", "did you mean `Get`?"),
        ("5", "must be text", "quote it"),
    ],
)
def test_a_scenario_is_compared_with_another_that_is_known(tmp_path: Path, against: str, says: str, hint: str) -> None:
    text = SUITE.replace("[Get]", f"[{{name: Mine, get: /a, against: {against}}}]")
    (problem,) = problems_of(tmp_path, text)
    assert says in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.field == "scenarios[0].against"


def test_the_catalogue_knows_what_its_scenarios_are_compared_with(tmp_path: Path) -> None:
    folder = write_catalogue(tmp_path / "catalogue", scenarios=SCENARIOS.replace("{post:", "{against: Gett, post:"))
    with pytest.raises(UsageError) as caught:
        load_catalogue(folder)
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == ("there is no scenario `Gett` to compare it with", "did you mean `Get`?")


@pytest.mark.parametrize(
    ("old", "new", "says", "field"),
    [
        ("[Get]", "[{name: M, get: /, headers: {Content-Length: '5'}}]", "the engine sets", "headers.Content-Length"),
        ("[Get]", "[{name: M, get: /, headers: {a b: v}}]", "`a b` is not a header name", "headers.a b"),
        ("[Get]", '[{name: M, get: /, headers: {A: "b\\r\\nC: d"}}]', "one line of ASCII", "headers.A"),
        ("[Get]", "[{name: M, connect: /}]", "unknown key `connect`", "connect"),
        ("fam.layered]", "{use: fam.layered, tls: {server_name: a b}}]", "`a b` does not have", "tls.server_name"),
        ("[Get]", "[{name: M, get: /, headers: {Upgrade: h2c}}]", "HTTP/2 forbids `Upgrade`", "headers.Upgrade"),
    ],
)
def test_what_the_engine_would_refuse_is_refused_in_the_suite(
    tmp_path: Path, old: str, new: str, says: str, field: str
) -> None:
    servers = "[{use: fam.plain, http: 2}, fam.layered]".replace(old, new)
    file = tmp_path / "some.yaml"
    file.write_text(SUITE.replace("[fam.plain, fam.layered]", servers).replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_suite(file, load_catalogue(write_catalogue(tmp_path / "catalogue", fam=TLS_FAMILY)))
    problem = next(problem for problem in caught.value.problems if says in problem.message)
    assert problem.hint
    assert problem.place is not None
    assert problem.place.line is not None
    assert str(problem.place.field).endswith(field)
