"""Files of requests in other formats: what each reader makes of them, what is left out, and what is never sent."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from redline.errors import UsageError
from redline.extras.importing import FORMATS, RequestSource, detect, read_requests
from redline.suite import opened_requests, referenced_files
from redline.suite.imported import Imported, Wanted

LOG = """\
10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /items?page=2 HTTP/1.1" 200 23 "https://x/" "Mozilla \\"5\\""
10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /items?page=2 HTTP/1.1" 304 0 "-" "-"
10.0.0.1 - ada [10/Oct/2026:13:55:36 +0000] "GET /old HTTP/1.0" 301 -
10.0.0.1 - - [10/Oct/2026:13:55:37 +0000] "POST /items HTTP/1.1" 201 5
10.0.0.1 - - [10/Oct/2026:13:55:37 +0000] "GET /wp-login.php HTTP/1.1" 404 5
10.0.0.1 - - [10/Oct/2026:13:55:37 +0000] "\\x16\\x03\\x01" 400 5
10.0.0.1 - - [10/Oct/2026:13:55:37 +0000] "GET /caf\\xC3\\xA9/{seq} HTTP/1.1" 200 5
this is something else
"""
ENVOY = """\
[2026-04-15T20:17:00.310Z] "GET /api/items?x=1 HTTP/2" 200 - 0 226 5 1 "10.0.35.28" "curl/8" \
"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "shop.example" "tcp://10.0.2.1:80"
[2026-04-15T20:17:00.310Z] "POST /api/items HTTP/2" 200 - 10 226 5 1 "-" "-" "-" "shop.example" "-"
"""
JSON_LOG = """\
{"time": "x", "request": "GET /a?b=1 HTTP/1.1", "status": "200", "host": "shop.example"}
{"request_method": "GET", "uri": "/a", "args": "b=1", "status": 200, "http_host": "shop.example"}
{"method": "GET", "path": "/b", "response_code": 200, "authority": "shop.example", "protocol": "HTTP/2"}
{"request": {"method": "GET", "uri": "/c", "host": "shop.example", "headers": {}}, "status": 200}
{"RequestMethod": "GET", "RequestPath": "/d", "DownstreamStatus": 204, "RequestHost": "shop.example"}
"""
ELB = """\
https 2026-07-02T22:23:00.186641Z app/shop/50dc6c495c0c9188 203.0.113.9:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 \
34 366 "GET https://shop.example:443/items?page=2 HTTP/2.0" "curl/8" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 \
arn:aws:elasticloadbalancing:us-east-2:1:targetgroup/a/7 "Root=1-58337262" "shop.example" "arn:aws:acm:c" 0 \
2026-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1
http 2026-07-02T22:23:01.000000Z app/shop/50dc6c495c0c9188 203.0.113.9:2817 - -1 -1 -1 301 - 34 366 \
"GET http://shop.example:80/items HTTP/1.1" "curl/8" - - - "Root=1-58337262" "-" "-" 0 \
2026-07-02T22:23:01.000000Z "redirect" "https://shop.example:443/items" "-" "-" "-" "-" "-" TID_2
"""
HAPROXY = """\
Feb  6 12:14:14 lb haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 \
2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|} {} "GET /items?q=%22a%22 HTTP/1.1"
Feb  6 12:14:15 lb haproxy[14389]: 10.0.1.2:33318 [06/Feb/2026:12:14:15.100] https-in~ app/<NOSRV> -1/-1/-1/-1/8 -1 0 \
- - CR-- 1/1/0/0/0 0/0 "GET https://shop.example/a HTTP/2.0"
Feb  6 12:14:15 lb haproxy[14389]: 10.0.1.2:33319 [06/Feb/2026:12:14:15.200] http-in http-in/<NOSRV> -1/-1/-1/-1/8 400 \
187 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>"
"""
W3C = """\
#Version: 1.0
#Fields: date time x-edge-location c-ip cs-method cs(Host) cs-uri-stem sc-status cs-uri-query x-host-header time-taken
2026-12-04\t21:02:31\tLAX1\t192.0.2.4\tGET\td1.cloudfront.net\t/items\t200\tpage=2\tshop.example\t0.002
2026-12-04\t21:02:31\tLAX1\t192.0.2.4\tGET\td1.cloudfront.net\t/a\t304\t-\tshop.example\t0.002
#Fields: date time cs-method cs-uri-stem cs-uri-query cs-username cs-host sc-status time-taken
2026-12-04 21:02:33 GET /b - SHOP\\ada shop.example 200 1500
"""
CURL = """\
# copied from a browser
curl 'https://shop.example/items' -H 'Cookie: a=b' -H 'accept: */*' -sk --compressed ;
curl https://shop.example/items \\
  -X PUT -H 'content-type: application/json' --data-raw $'{"n": "it\\'s", "a": "\\u00e9"}'
curl "https://shop.example/$ITEM"
curl -T a https://shop.example/
curl https://cdn.example/logo.png
"""
VEGETA = """\
GET http://127.0.0.1:8080/items
Accept: text/plain
Authorization: Bearer secret

# a second target
POST http://127.0.0.1:8080/items
Content-Type: application/json
@item.json
"""
URLS = """\
# the pages of the shop
http://shop.example/items
/items?page=2
http://shop.example/items
http://shop.example/search POST q=tea&page=1
"""
VEGETA_JSON = """\
{"method": "POST", "url": "http://h/a", "header": {"A": ["b", "c"]}, "body": "eyJhIjoxfQ=="}
{"method": "GET", "url": "http://h/a"}
{"method": "PUT", "url": "http://h/a", "body": "//8="}
"""


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


def entry(url: str, method: str = "GET", status: int = 200, **request: Any) -> dict[str, Any]:
    return {"request": {"method": method, "url": url, "headers": [], **request}, "response": {"status": status}}


HAR = har(
    entry("https://shop.example/", headers=[{"name": ":path", "value": "/"}, {"name": "sec-ch-ua", "value": "x"}]),
    entry("https://shop.example/items", headers=[{"name": "X-CSRF-Token", "value": "t"}]),
    entry("https://shop.example/items", "POST", 201, postData={"mimeType": "application/json", "text": '{"a": 1}'}),
    entry("https://shop.example/login", "POST", postData={"mimeType": "application/json", "text": '{"password": "x"}'}),
    entry("https://shop.example/upload", "POST", postData={"mimeType": "multipart/form-data; boundary=x"}),
    entry("https://cdn.example/a.js"),
    entry("wss://shop.example/live", status=101),
    entry("data:text/plain,x"),
    entry("https://shop.example/blocked", status=0),
    {**entry("https://shop.example/cached"), "_fromCache": "memory"},
)
TEXTS = {
    "log": LOG,
    "envoy": ENVOY,
    "json-log": JSON_LOG,
    "elb": ELB,
    "haproxy": HAPROXY,
    "w3c": W3C,
    "har": HAR,
    "curl": CURL,
    "vegeta": VEGETA,
    "vegeta-json": VEGETA_JSON,
    "urls": URLS,
}


def source(text: str | bytes, folder: Path = Path("/nowhere")) -> RequestSource:
    content = text.encode() if isinstance(text, str) else text
    return RequestSource("file", io.BytesIO(content), referenced_files(folder / "file").body)


def imported(text: str | bytes, folder: Path = Path("/nowhere"), wanted: Wanted | None = None) -> Imported:
    read = source(text, folder)
    form = detect(read)
    assert form is not None
    return read_requests(read, form, wanted or Wanted())


def left(made: Imported, kind: str = "request") -> dict[str, int]:
    return {entry.why: entry.count for entry in made.left_out if entry.kind == kind}


def test_a_log_becomes_its_targets_by_their_frequency() -> None:
    made = imported(LOG)
    assert made.requests == [
        {"name": "items", "get": "/items?page=2", "weight": 2},
        {"name": "old", "get": "/old", "expect": {"status": 301}},
        {"name": "caf-C3-A9-seq", "get": "/caf%C3%A9/{{seq}}"},
    ]
    assert left(made) == {
        "lines of another form": 1,
        "POST: a log has no bodies": 1,
        "answered with status 404": 1,
        "that are not HTTP requests": 1,
    }
    assert left(made, "secret") == {"the header Authorization": 1}
    assert (made.total, made.host) == (8, "")


def test_a_first_word_more_in_a_log_is_the_host() -> None:
    lines = ['shop:80 10.0.0.1 - - [1/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 1'] * 2
    lines.append('blog:80 10.0.0.1 - - [1/Oct/2026:00:00:00 +0000] "GET /b HTTP/1.1" 200 1')
    made = imported("\n".join(lines))
    assert (made.host, made.counts, left(made)) == ("shop", [2], {"to blog": 1})
    for asked in ("blog:80", "Blog"):
        assert imported("\n".join(lines), wanted=Wanted(host=asked)).requests == [{"name": "b", "get": "/b"}]
    with pytest.raises(UsageError, match="there is no request to x"):
        imported("\n".join(lines), wanted=Wanted(host="x"))


def test_the_most_frequent_are_kept_and_the_rest_is_counted() -> None:
    line = '1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET /{} HTTP/1.1" 200 1\n'
    made = imported("".join(line.format(at) * (9 - at) for at in range(5)), wanted=Wanted(most=2))
    assert [(request["get"], count) for request, count in zip(made.requests, made.counts, strict=True)] == [
        ("/0", 9),
        ("/1", 8),
    ]
    assert left(made) == {"not among the 2 most frequent (3 different requests)": 18}
    assert made.total == 35


def test_different_requests_are_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.extras.importing.access_logs.MOST_DIFFERENT", 2)
    line = '1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET /{} HTTP/1.1" 200 1\n'
    made = imported("".join(line.format(path) for path in ("a", "b", "c", "a", "d")))
    assert made.counts == [2, 1]
    assert left(made) == {"after the first 2 different requests": 2}


def test_weights_are_whole_and_keep_their_ratio() -> None:
    line = '1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET /{} HTTP/1.1" 200 1\n'
    made = imported(line.format("a") * 6 + line.format("b") * 4)
    assert [request.get("weight", 1) for request in made.requests] == [3, 2]


@pytest.mark.parametrize(
    ("before", "host", "signed_in"),
    [
        ('2001:db8::1 - ""', "", False),
        ("::1 - ada lovelace", "", True),
        ("shop.example:443 10.0.0.1 - -", "shop.example", False),
        ("2026-11-26T12:00:00.123Z stdout F 10.0.0.1 - -", "", False),
        ("<190>Nov 26 12:00:00 web nginx: 10.0.0.1 - ada", "", True),
        ("web-1  | 10.0.0.1 - -", "", False),
        ("[pod/web-0/nginx] 10.0.0.1 - -", "", False),
    ],
)
def test_words_that_others_put_before_a_line_are_no_host(before: str, host: str, signed_in: bool) -> None:
    made = imported(f'{before} [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/8"\n')
    assert made.host == host
    assert left(made, "secret") == ({"the header Authorization": 1} if signed_in else {})


def test_a_line_that_docker_keeps_is_read_as_it_was_written() -> None:
    lines = [json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "x"}) for line in LOG.splitlines()]
    assert imported("\n".join(lines)).requests == imported(LOG).requests


def test_a_part_of_a_file_is_left_out_of_a_log() -> None:
    made = imported(LOG + '1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET /film HTTP/1.1" 206 1\n')
    assert left(made)["for a part of a file: a log has no header Range"] == 1


def test_a_log_of_two_lines_may_end_in_the_middle_of_one() -> None:
    line = '1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 1\n'
    assert left(imported(line + line[:50])) == {"lines of another form": 1}


def test_lists_of_urls_and_paths_are_read(tmp_path: Path) -> None:
    (tmp_path / "order.txt").write_text("item=1")
    made = imported(f"{URLS}/orders POST <order.txt\n/empty POST\n", tmp_path)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert made.requests == [
        {"name": "items", "get": "/items", "weight": 2},
        {"name": "items-2", "get": "/items?page=2"},
        {"name": "post-search", "post": "/search", "headers": form, "body": "q=tea&page=1"},
        {"name": "post-orders", "post": "/orders", "headers": form, "body": {"file": "order.txt"}},
        {"name": "post-empty", "post": "/empty", "headers": form},
    ]


def test_identifiers_of_single_requests_do_not_tell_requests_apart() -> None:
    pairs = [
        [{"name": "traceparent", "value": f"00-{at}"}, {"name": "X-Request-Id", "value": str(at)}] for at in (1, 2)
    ]
    assert imported(har(*(entry("https://h/a", headers=headers) for headers in pairs))).counts == [2]


def test_the_keys_of_a_json_document_are_those_of_its_top() -> None:
    schemas = {"X": {"properties": {"log": {"type": "string"}}}}
    document = {
        "components": {"schemas": schemas, "x": "y" * 100_000},
        "paths": {"/a": {"get": {}}},
        "openapi": "3.0.1",
    }
    assert imported(json.dumps(document)).requests == [{"name": "a", "get": "/a"}]


def test_the_texts_of_envoy_have_the_host() -> None:
    made = imported(ENVOY)
    assert made.requests == [{"name": "api-items", "get": "/api/items?x=1"}]
    assert (made.host, left(made)) == ("shop.example", {"POST: a log has no bodies": 1})


def test_a_user_agent_of_envoy_is_no_host() -> None:
    asked = '[2026-04-15T20:17:00.310Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 135 3 1'
    by = '"-" "curl/8.1" "84961386-6d84-929d-98bd-c5aee93b5c88" "shop:8000" "127.0.0.1:80" inbound|8000|| 10.0.0.1:1 -'
    assert imported(f"{asked} {by} default\n").host == "shop:8000"


def test_logs_in_json_are_read_by_the_keys_of_several_servers() -> None:
    made = imported(JSON_LOG)
    assert {str(request["get"]): count for request, count in zip(made.requests, made.counts, strict=True)} == {
        "/a?b=1": 2,
        "/b": 1,
        "/c": 1,
        "/d": 1,
    }
    assert made.host == "shop.example"
    assert made.requests[-1]["expect"] == {"status": 204}


def test_a_recording_of_a_browser_loses_what_must_not_be_sent() -> None:
    made = imported(HAR)
    assert made.requests == [
        {"name": "root", "get": "/"},
        {"name": "items", "get": "/items"},
        {"name": "post-items", "post": "/items", "body": '{"a": 1}', "expect": {"status": 201}},
    ]
    assert made.host == "https://shop.example"
    assert left(made, "secret") == {"the header X-Csrf-Token": 1}
    assert left(made) == {
        "whose body holds a secret (`password`)": 1,
        "whose body was not recorded": 1,
        "of a WebSocket": 1,
        "that are not of http:// or https://": 1,
        "without an answer": 1,
        "answered by the browser's cache": 1,
        "to https://cdn.example": 1,
    }


def test_the_host_of_a_page_stays_where_others_are_asked_more() -> None:
    text = har(entry("https://shop.example/"), *(entry(f"https://cdn.example/{at}") for at in range(3)))
    assert (imported(text).host, imported(text, wanted=Wanted(host="cdn.example")).counts) == (
        "https://shop.example",
        [1, 1, 1],
    )


def test_commands_of_curl_are_read_as_bash_reads_them() -> None:
    made = imported(CURL)
    assert made.requests == [
        {"name": "items", "get": "/items", "headers": {"accept": "*/*", "Accept-Encoding": "deflate, gzip"}},
        {
            "name": "put-items",
            "put": "/items",
            "headers": {"content-type": "application/json"},
            "body": '{"n": "it\'s", "a": "é"}',
        },
    ]
    assert left(made) == {
        "with a variable of the shell": 1,
        "that cannot be sent: curl -T has no counterpart here": 1,
        "to https://cdn.example": 1,
    }
    insecure = "--insecure of curl, which is a flag of the command that loads"
    assert left(made, "secret") == {"the header Cookie": 1, insecure: 1}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("curl http://h/a | jq . > out.json\n", "/a"),
        ("curl -s http://h/a 2>/dev/null -o x.html &\n", "/a"),
        ("curl http://h/a |\n  jq .\n", "/a"),
        ("# a comment: it's\n\n$ curl http://h/a ; # more\n", "/a"),
        ("/usr/bin/curl -fsSL --retry-delay 2 'http://h/a?b=c d'\n", "/a?b=c%20d"),
        ("curl -G http://h/a --data-urlencode 'b=c d' && curl http://other/\ncurl http://h/a?b=c+d", "/a?b=c+d"),
        ("curl -sk http://h/a --http2\n", "/a"),
        ("curl http://h/a \\\r\n  -L\r\n", "/a"),
    ],
)
def test_what_a_shell_does_with_the_output_is_left_out(text: str, target: str) -> None:
    assert [request["get"] for request in imported(text).requests] == [target]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ('curl http://h/ -H "A: $(date +%s; id)"', "with a variable of the shell"),
        ("curl http://h/ -d @- <in.json", "with `<` of the shell"),
        ("(curl http://h/)", "with `(` of the shell"),
        ("curl http://h/ -u me", "that cannot be sent: curl -u me: curl asks for the password"),
        ("curl http://h/[1-9]", "that cannot be sent: curl makes several URLs of `[1-9]`"),
        ("curl http://h/ -b jar", "that cannot be sent: curl -b jar: this is a file"),
        (
            "curl http://h/ -d $'a\\0b'",
            "that cannot be sent: curl: half of a character, or a NUL, stands in the command",
        ),
    ],
)
def test_a_command_that_only_a_shell_can_fill_in_is_left_out(command: str, why: str) -> None:
    made = imported(f"curl http://h/a\n{command}\ncurl http://h/b")
    assert [request["get"] for request in made.requests] == ["/a", "/b"]
    assert left(made) == {why: 1}
    assert made.left_out[0].example == "line 2"


@pytest.mark.parametrize(
    ("content", "body"),
    [(b"a\r\nb\n", "ab"), (b"ab", {"file": "b.txt"}), (b"\xff\n", None), (b"\n", None), (b"@a\n", None)],
)
def test_a_file_of_data_is_sent_without_its_line_ends(tmp_path: Path, content: bytes, body: object) -> None:
    (tmp_path / "b.txt").write_bytes(content)
    made = imported("curl http://h/a -d @b.txt\ncurl http://h/b --data-binary @b.txt\n", tmp_path)
    bodies = [request.get("body") for request in made.requests]
    assert bodies == [*([] if body is None else [body]), {"file": "b.txt"}]


def test_half_a_character_in_a_url_is_left_out() -> None:
    for text in (har(entry("http://h/\ud83d"), entry("http://h/a")), "curl http://h/$'\\xff'\ncurl http://h/a"):
        assert left(imported(text)) == {"that cannot be sent: half of a character stands in it": 1}


def test_a_password_in_a_command_is_not_sent() -> None:
    made = imported("curl -u me:secret http://h/a")
    assert made.requests == [{"name": "a", "get": "/a"}]
    assert left(made, "secret") == {"the header Authorization": 1}


def test_targets_of_vegeta_keep_the_files_of_their_bodies(tmp_path: Path) -> None:
    (tmp_path / "item.json").write_text("{}")
    made = imported(VEGETA, tmp_path)
    assert made.requests == [
        {"name": "items", "get": "/items", "headers": {"Accept": "text/plain"}},
        {
            "name": "post-items",
            "post": "/items",
            "headers": {"Content-Type": "application/json"},
            "body": {"file": "item.json"},
        },
    ]
    assert (made.host, made.body_files) == ("http://127.0.0.1:8080", ("item.json",))
    with pytest.raises(UsageError, match=r"there is no file /nowhere/item\.json"):
        imported(VEGETA)


def test_targets_in_json_have_bodies_in_base64() -> None:
    made = imported(VEGETA_JSON)
    assert made.requests == [
        {"name": "post-a", "post": "/a", "headers": {"A": ["b", "c"]}, "body": '{"a":1}'},
        {"name": "a", "get": "/a"},
    ]
    assert left(made) == {"whose body is not text": 1}


@pytest.mark.parametrize(
    "url",
    [
        "http://h/a?token=x",
        "http://h/a?api_key=x&X-Amz-Signature=1",
        "http://h/a?Password=x",
        "http://user:pass@h/a",
        "http://h/a?q=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x",
    ],
)
def test_secrets_in_urls_are_not_sent(url: str) -> None:
    made = imported(f"GET {url}\n")
    assert made.requests == [{"name": "a", "get": "/a"}]
    assert left(made, "secret")
    assert "pass" not in repr(made)


@pytest.mark.parametrize(
    "name", ["Cookie", "AUTHORIZATION", "X-Api-Key", "X-CSRF-Token", "Proxy-Authorization", "X-Auth"]
)
def test_secrets_in_headers_are_not_sent_unless_they_are_kept(name: str) -> None:
    text = f"GET http://h/a\n{name}: 1234\nX-Mine: 1\n"
    made = imported(text)
    assert made.requests[0]["headers"] == {"X-Mine": "1"}
    assert "1234" not in repr(made)
    assert imported(text, wanted=Wanted(frozenset({name.lower()}))).requests[0]["headers"] == {
        name: "1234",
        "X-Mine": "1",
    }


@pytest.mark.parametrize("query", ["sort_key=a", "page=2", "q=tea", "author=x", "a", "", "x=1&x=2"])
def test_other_parameters_are_sent_as_they_are(query: str) -> None:
    made = imported(f"GET http://h/a?{query}\n")
    assert made.requests[0]["get"] == f"/a?{query}".removesuffix("?")
    assert not made.left_out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello\n", "file:1:1: this is not a list of requests, and no other format"),
        ('{"a": 1}', "file:1: this JSON has no requests that Redline knows"),
        ('{"a": \n 1,}', "file:2:4: this is not JSON"),
        (
            '{"log": {"entries": [{"request": {"method": "GET"}}]}}',
            "no request that can be sent\n  hint: left out: 1 without a URL",
        ),
        ('{"log": {}}', "log.entries: `log.entries` is missing"),
        ("GET http://h/\nwhat is this\n", "file:2: this is neither a target, a header nor a body"),
        ("POST http://h/\n@a\n@b\n", "there is no file"),
        ("POST http://h/\n@../secret\n", "../secret"),
        ("POST http://h/\n@/etc/passwd\n", "file:2: /etc/passwd leads out of the folder"),
        ("http://h/a\nh.example/b\nhttp://h/c\n", "file:2: this is not a URL"),
        ("http://h/a\nHOST=b\nhttp://h/c\n", "file:2: this is a variable of siege"),
        ("/a\n/b POST </etc/passwd\n", "file:2: /etc/passwd leads out of the folder"),
        ('curl ^"https://h/?a=b^&c=d^" ^\n  -H ^"a: b^"\n', "file:1: `^` is for the command prompt of Windows"),
        ("curl http://h/\nrm -rf x\n", "file:2: this is not a curl command"),
        ("curl http://h/?a=1&b=2\n", "file:1: this is not a curl command"),
        ("curl http://h/ \\\n -L\n| jq\n", "file:3: this is not a curl command"),
        ("curl http://h/\ncurl 'http://h/\n", "file:2: no closing quotation"),
        ("curl 'http://h/\n", "file:1: no closing quotation after 'http://h/"),
        ('{"method": "GET", "url": "http://h/"}\n{"method": "GET"}\n', "file:2: url: `url` is missing"),
        ('{"method": "GET", "url": "http://h/", "body": "%"}\n', "file:1: body: `body` is not base64"),
        ("GET ftp://h/\nGET http://h/?token=1 x\n", "no other format"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        imported(text, tmp_path)
    assert says in str(refused.value)
    assert refused.value.hint


def test_a_file_without_a_request_that_can_be_sent_says_why() -> None:
    with pytest.raises(UsageError, match=r"no request that can be sent\n  hint: left out: 1 answered with status 500"):
        imported('1.1.1.1 - - [1/Oct/2026:00:00:00 +0000] "GET / HTTP/1.1" 500 1\n')


def test_a_packed_log_is_unpacked_and_a_broken_one_refused() -> None:
    packed = gzip.compress(LOG.encode())
    assert imported(packed).requests == imported(LOG).requests
    for broken in (packed[:-20], packed[:30] + b"x" * 9 + packed[39:]):
        with pytest.raises(UsageError, match="file cannot be read"):
            imported(broken)


def test_lines_do_not_depend_on_how_a_file_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.suite.request_source.HEAD_BYTES", 7)
    monkeypatch.setattr("redline.suite.request_source._BLOCK_BYTES", 5)
    text = "a\r\n\nbé and more\n\nlast"
    assert list(source(text).lines()) == list(enumerate(["a", "", "bé and more", "", "last"], start=1))
    assert source(text).text() == text
    monkeypatch.setattr("redline.suite.request_source.MOST_LINE_BYTES", 4)
    with pytest.raises(UsageError, match="file:3: this line is longer"):
        list(source(text).lines())


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_format_is_seen_from_the_content(name: str) -> None:
    form = detect(source(TEXTS[name]))
    assert form is not None
    assert form.name == name
    assert sorted([*TEXTS, "openapi"]) == sorted(known.name for known in FORMATS)


@pytest.mark.parametrize("text", ["- {name: a, get: /}\n", "[]", "", "# nothing\n", "---\n- get: /\n"])
def test_a_list_of_requests_is_no_other_format(text: str) -> None:
    assert detect(source(text)) is None


def test_a_file_is_opened_as_others_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"), opened_requests(tmp_path / "none"):
        pass
    with pytest.raises(UsageError, match="is a folder"), opened_requests(tmp_path):
        pass


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('2001:db8::1%eth0 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 1', "/a"),
        ('- - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 - "-" "-"', "/a"),
        ('1.1.1.1 - - [10/Oct/2026:13:55:36 +0000] "GET /a?q=\\"x\\" HTTP/1.1" 200 1', '/a?q="x"'),
        ('1.1.1.1 - - [10/Oct/2026:13:55:36 +0000] "GET http://shop.example/a HTTP/3.0" 200 1', "/a"),
        ("curl -sSLXPURGE http://h/a", "/a"),
        ("curl --url=http://h/a", "/a"),
        ("\ufeff" + har(entry("http://h/a", headers=None, postData=None)), "/a"),
    ],
)
def test_odd_files_are_read(line: str, path: str) -> None:
    (request,) = imported(line).requests
    assert path in request.values()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("http://h/a --next http://h/b", "--next"),
        ("http://h/a --url-query q=1", "--url-query"),
        ("--variable x=1 --expand-data 'a={{x}}' http://h/a", "--variable"),
        ("--rate 2/s http://h/a", "--rate"),
    ],
)
def test_commands_that_are_more_than_a_request_are_left_out_by_name(command: str, option: str) -> None:
    (why,) = left(imported(f"curl http://h/c\ncurl {command}"))
    assert why.startswith(f"that cannot be sent: curl {option} ")


def test_headers_of_a_recording_may_be_a_mapping() -> None:
    assert imported(har(entry("http://h/a", headers={"A": "b"}))).requests[0]["headers"] == {"A": "b"}
