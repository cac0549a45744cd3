"""Forms of access logs: what collectors put around a line, what load balancers write, hosts, line ends and times."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.suite.imported import Wanted
from tests.unit.extras.importing.test_importing import imported, left
from tests.unit.extras.importing.test_times import timed

ACCESS = Path(__file__).parents[3] / "recorded" / "access"
LINE = '10.0.0.1 - - [10/Oct/2026:13:55:{:02} +0000] "GET /{} HTTP/1.1" 200 23 "-" "curl/8"'
AT = "2026-10-10T13:55:36.123456789Z"


def _numbered(lines: list[str]) -> list[str]:
    return [f"{at:6}\t{line}" for at, line in enumerate(lines, start=1)]


COLLECTORS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "docker": lambda line: json.dumps({"log": f"{line}\n", "stream": "stdout", "time": AT}),
    "CRI": lambda line: f"{AT} stdout F {line}",
    "kubectl --prefix": lambda line: f"[pod/web-7d9c/nginx] {line}",
    "kubectl --timestamps": lambda line: f"{AT} {line}",
    "kubectl with both": lambda line: f"[pod/web-7d9c/nginx] {AT} {line}",
    "compose": lambda line: f"web-1  | {line}",
    "compose with times": lambda line: f"web-1  | {AT} {line}",
    "a service of docker": lambda line: f"web.1.x7k2@node-2    | {line}",
    "syslog": lambda line: f"Oct 10 13:55:36 web-1 nginx: {line}",
    "syslog with a pid": lambda line: f"Oct 10 13:55:36 web-1 nginx[1234]: {line}",
    "syslog over a network": lambda line: f"<190>Oct  3 13:55:36 web-1 nginx: {line}",
    "RFC 5424": lambda line: f"<134>1 {AT} web-1 nginx 1234 - - {line}",
    "journalctl -o short-iso": lambda line: f"2026-10-10T13:55:36+0000 web-1 nginx[1234]: {line}",
    "journalctl -o json": lambda line: json.dumps({"__REALTIME_TIMESTAMP": "1791640536000000", "MESSAGE": line}),
    "journalctl of colours": lambda line: json.dumps({"MESSAGE": [*f"\x1b[32m{line}\x1b[0m".encode()]}),
    "Filebeat": lambda line: json.dumps({"@timestamp": AT, "message": line, "host": {"name": "web-1"}}),
    "Fluent Bit": lambda line: json.dumps({"date": 1791640536.1, "log": line, "kubernetes": {"host": "node-2"}}),
    "Google Cloud": lambda line: json.dumps({"timestamp": AT, "textPayload": line}),
    "docker of Filebeat": lambda line: json.dumps({"message": json.dumps({"log": line, "stream": "stdout"})}),
    "colours": lambda line: f"\x1b[36mweb-1  |\x1b[0m {line}",
    "cat -n": lambda line: f"    12\t{line}",
    "grep -n": lambda line: f"12:{line}",
    "cron's mail": lambda line: f"  {line}  ",
}
SERVERS = [
    "nginx-combined.log",
    "nginx-default-escape.json",
    "nginx-vhost.log",
    "caddy.json",
    "haproxy-http.log",
    "squid.log",
]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("collector", COLLECTORS)
def test_what_a_collector_puts_around_a_line_does_no_harm(server: str, collector: str) -> None:
    lines = (ACCESS / server).read_text().splitlines()
    plain, wrapped = imported("\n".join(lines)), imported("\n".join(map(COLLECTORS[collector], lines)))
    assert (wrapped.requests, wrapped.host, left(wrapped)) == (plain.requests, plain.host, left(plain))
    replays = [timed("\n".join(map(COLLECTORS[name], lines))) for name in ("as it is", collector)]
    assert replays[0].arrivals == replays[1].arrivals, "the time of the server is better than that of the collector"


@pytest.mark.parametrize(
    "before", ["203.0.113.7", "-", "17", "203.0.113.7,", "2001:db8::7", "203.0.113.7:5123", "web", '"-"']
)
def test_what_stands_before_the_client_is_no_host_unless_it_has_the_form_of_one(before: str) -> None:
    """One line in three has another first word: all of them are loaded."""
    lines = [f"{before if at % 3 else '198.51.100.2'} {LINE.format(at, 'a')}" for at in range(9)]
    made = imported("\n".join(lines))
    assert (made.counts, made.host, left(made)) == ([9], "", {})


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["shop.test", "shop.test:80", "Shop.Test"], {"/0": 1, "/1": 1, "/2": 1}),
        (["shop.test:443", "shop.test"], {"/0": 1, "/1": 1}),
        (["shop.test:8080", "shop.test:8080", "shop.test"], {"/0": 1, "/1": 1}),
        (["shop.test:443", "shop.test:443", "shop.test:80", "shop.test"], {"/0": 1, "/1": 1, "/3": 1}),
    ],
)
def test_a_host_with_and_without_its_default_port_is_a_single_host(names: list[str], kept: dict[str, int]) -> None:
    text = [f"{name} {LINE.format(at, at)}" for at, name in enumerate(names)]
    objects = [
        json.dumps({"request": f"GET /{at} HTTP/1.1", "status": 200, "host": name}) for at, name in enumerate(names)
    ]
    for made in (imported("\n".join(text)), imported("\n".join(objects))):
        assert dict(zip((request["get"] for request in made.requests), made.counts, strict=True)) == kept
        assert made.total == len(names)


def test_a_url_with_the_port_of_its_scheme_names_the_same_host() -> None:
    made = imported("GET http://shop.test:80/a\nGET http://shop.test/b\nGET https://shop.test/c\n")
    assert (made.host, made.counts) == ("http://shop.test", [1, 1])
    assert imported("GET http://shop.test:80/a\n", wanted=Wanted(host="shop.test:80")).counts == [1]


def test_an_address_under_host_may_be_that_of_the_client() -> None:
    lines = [json.dumps({"host": f"10.0.0.{at}", "request": "GET /a HTTP/1.1", "statusCode": "200"}) for at in range(9)]
    assert imported("\n".join(lines)).counts == [9]


FORMS = {
    "Envoy": '[2026-04-15T20:17:00.310Z] "GET /a?b=%20c HTTP/2" 200 - 0 226 5 1 "10.0.35.28" "curl/8" '
    '"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "shop.test" "tcp://10.0.2.1:80"',
    "Traefik": '10.0.0.1 - - [15/Apr/2026:20:17:00 +0000] "GET /a?b=%20c HTTP/1.1" 200 12 "-" "-" 1 "a@docker" "u" 2ms',
    "Traefik's JSON": json.dumps({
        "RequestMethod": "GET", "RequestPath": "/a?b=%20c", "DownstreamStatus": 200, "RequestHost": "shop.test",
        "StartUTC": "2026-04-15T20:17:00.310Z", "Duration": 2000000, "ClientHost": "10.0.0.1",
    }),
    "a balancer of AWS": "http 2026-04-15T20:17:00.186641Z app/shop/50dc 192.0.2.9:2817 10.0.0.1:80 0.0 0.001 0.0 "
    '200 200 34 366 "GET http://shop.test:80/a?b=%20c HTTP/1.1" "curl/7.46.0" - - arn:aws:x:targetgroup/a/7 '
    '"Root=1-58337262" "-" "-" 0 2026-04-15T20:17:00.100000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"',
    "an older balancer of AWS": "h2 2026-04-15T20:17:00.186641Z app/shop/50dc 203.0.113.9:2817 10.0.0.1:80 0.0 0.1 0.0 "
    '200 200 34 366 "GET https://shop.test:443/a?b=%20c HTTP/2.0" "curl/7.46.0" - - arn "Root=1-58337262"',
    "a classic balancer of AWS": "2026-04-15T20:17:00.945958Z shop 192.0.2.9:2817 10.0.0.1:80 0.00007 0.001048 0.00005 "
    '200 200 0 29 "GET http://shop.test:80/a?b=%20c HTTP/1.1" "curl/7.38.0" - -',
    "HAProxy with TLS": "10.0.1.2:33317 [15/Apr/2026:20:17:00.655] https~ app/srv1 10/0/30/69/109 200 2750 - - ---- "
    '1/1/1/1/0 0/0 "GET https://shop.test/a?b=%20c HTTP/2.0" 0/0000000000000000/0/0/0 shop.test/TLSv1.3/TLS_AES_128',
    "S3": "79a59df900b949e5 shop [15/Apr/2026:20:17:00 +0000] 192.0.2.3 79a59df9 3E57427F3EXAMPLE REST.GET.OBJECT a "
    '"GET /a?b=%20c HTTP/1.1" 200 - 113 113 7 5 "-" "curl/8" - -',
    "API Gateway": json.dumps({
        "requestId": "1", "ip": "192.0.2.3", "requestTime": "15/Apr/2026:20:17:00 +0000", "httpMethod": "GET",
        "path": "/a", "query": "b=%20c", "status": "200", "protocol": "HTTP/1.1",
    }),
    "Google's balancer": json.dumps({
        "timestamp": "2026-04-15T20:17:00.1Z", "jsonPayload": {"@type": "x"},
        "httpRequest": {"requestMethod": "GET", "requestUrl": "https://shop.test/a?b=%20c", "status": 200},
    }),
    "Azure's gateway": json.dumps({
        "timeStamp": "2026-04-15T20:17:00Z",
        "properties": {"httpMethod": "GET", "requestUri": "/a?b=%20c", "httpStatus": 200, "host": "shop.test"},
    }),
    "Elastic": json.dumps({
        "@timestamp": "2026-04-15T20:17:00.000Z", "url": {"original": "/a?b=%20c", "domain": "shop.test"},
        "http": {"request": {"method": "get"}, "response": {"status_code": 200}},
    }),
    "Heroku": '2026-04-15T20:17:00.310000+00:00 heroku[router]: at=info method=GET path="/a?b=%20c" host=shop.test '
    'request_id=8601b555 fwd="204.204.204.204" dyno=web.1 connect=1ms service=18ms status=200 bytes=13 protocol=https',
    "IIS": "#Software: Microsoft IIS 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query "
    "s-port cs-username c-ip sc-status time-taken\n2026-04-15 20:17:00 10.0.0.1 GET /a b=%20c 80 - 192.0.2.3 200 15",
    "CloudFront": "#Version: 1.0\n#Fields: date time cs-method cs(Host) cs-uri-stem sc-status cs-uri-query "
    "x-host-header time-taken\n2026-04-15\t20:17:00\tGET\td1.cloudfront.net\t/a\t200\tb=%20c\tshop.test\t0.015",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_the_log_of_a_server_is_read_with_its_times(name: str) -> None:
    for made in (imported(FORMS[name]), timed(FORMS[name])):
        assert made.requests == [{"name": "a", "get": "/a?b=%20c"}]
        assert (made.total, made.left_out) == (1, [])
        assert made.host in {"", "shop.test"}
    assert len(made.arrivals) == 1


def test_what_a_load_balancer_answered_itself_is_left_out() -> None:
    asked = FORMS["a balancer of AWS"]
    answered = asked.replace('"forward"', '"waf,redirect"').replace("200 200 34", "301 - 34")
    lost = asked.replace("200 200 34", "- - 34")
    made = imported(f"{asked}\n{answered}\n{lost}")
    assert (made.counts, left(made)) == ([1], {"that the load balancer answered itself": 1, "without an answer": 1})


def test_a_log_may_begin_with_any_number_of_other_lines() -> None:
    start = [f"/docker-entrypoint.sh: step {at}: ready" for at in range(25)] + ["key: value", "[notice] started"]
    made = imported("\n".join([*start, LINE.format(1, "a"), LINE.format(2, "a")]))
    assert (made.form, made.counts, left(made)) == ("access log", [2], {"lines of another form": 27})
    objects = [json.dumps({"level": "info", "msg": f"step {at}"}) for at in range(25)]
    entry = json.dumps({"method": "GET", "path": "/a", "status": 200, "ts": 1791640536.5})
    made = imported("\n".join([*objects, entry]))
    assert (made.form, made.counts, left(made)) == ("access log in JSON", [1], {"lines of another form": 25})
    assert len(timed("\n".join([*objects, entry])).arrivals) == 1


def test_a_log_of_several_forms_is_read_whole() -> None:
    names = ("Envoy", "Traefik's JSON", "a classic balancer of AWS", "Heroku")
    made = imported("\n".join(FORMS[name] for name in names))
    assert (made.counts, made.left_out) == ([len(names)], [])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\n\r\n"])
def test_line_ends_of_any_kind_end_lines(end: str) -> None:
    text = "".join(f"{LINE.format(at, at)}{end}" for at in range(3))
    for content in (text, text.removesuffix(end), f"\ufeff{text}", gzip.compress(text.encode())):
        made = imported(content)
        assert (made.counts, made.total) == ([1, 1, 1], 3)


def test_lines_that_end_in_two_ways_are_all_read() -> None:
    made = imported("\n".join([LINE.format(1, "a"), "\r".join(LINE.format(at, "b") for at in range(3))]))
    assert made.counts == [3, 1]


@pytest.mark.parametrize(
    ("escaped", "sent"),
    [
        (r"\x22", '"'), (r"\"", '"'), (r"\\", "\\"), (r"\x5C", "\\"), (r"\\x41", r"\x41"), (r"\xC3\xA9", "%C3%A9"),
        (r"\xe9", "%E9"), (r"\x41", "A"), (r"\t", "%09"), (r"\x00", "%00"), ("é", "%C3%A9"), ("%zz%", "%zz%"),
    ],
)  # fmt: skip
def test_a_target_is_sent_as_the_client_sent_it(escaped: str, sent: str) -> None:
    (request,) = imported(LINE.format(1, f"a?q={escaped}")).requests
    assert request["get"] == f"/a?q={sent}"
    no_json = f'{{"status": 200, "took": -, "method": "GET", "uri": "/a?q={escaped}", "n": }}'
    if escaped not in {r"\"", r"\\", r"\t", r"\\x41"}:  # which JSON has as its own escapes
        assert imported(no_json).requests[0]["get"] == f"/a?q={sent}"


@pytest.mark.parametrize(
    "time",
    [
        "10/Oct/2026:15:55:36.250 +0200", "10/Oct/2026:13:55:36.250", "2026-10-10T13:55:36.250Z",
        "2026-10-10 13:55:36,250", "2026/10/10 13:55:36.250", "2026-10-10T13:55:36.250000123+00:00", "1791640536.250",
        "1791640536250", "1791640536250000", "1791640536250000000", "2026-10-10 15:55:36.250 +0200",
        "2026-10-10t13:55:36.250z", "Sat Oct 10 13:55:36.250 2026",
    ],
)  # fmt: skip
def test_times_with_parts_of_a_second_in_any_zone(time: str) -> None:
    first = json.dumps({"request": "GET /a HTTP/1.1", "status": 200, "time": "2026-10-10T13:55:36.000Z"})
    made = timed(f"{first}\n{json.dumps({'request': 'GET /b HTTP/1.1', 'status': 200, 'time': time})}")
    assert made.arrivals[1].at_ns // 1000 == 250_000


@pytest.mark.parametrize(
    "time",
    [
        "yesterday at noon", "", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z",
        "99999999999999999999",
        "1e400", "-1", "31/Feb/2026:00:00:00 +0000", "10/Okt/2026:13:55:36 +0000", "10/Oct/2026:13:55:36 +9900",
        "0001-01-01 00:00:00",
    ],
)  # fmt: skip
def test_a_request_without_a_time_that_can_be_read_is_left_out_of_a_replay_by_name(time: str) -> None:
    """What was sent and what was left out are all that is there."""
    lines = [{"request": "GET /a HTTP/1.1", "status": 200, "time": at} for at in ("2026-10-10T13:55:36Z", time)]
    text = "\n".join(map(json.dumps, lines))
    made = timed(text)
    assert (len(made.arrivals), made.counts, made.total) == (1, [1], 2)
    assert left(made) == {"without a time from 2000 to 2199 that can be read": 1}
    assert imported(text).counts == [2], "a list needs no times"
    with pytest.raises(UsageError, match="does not say when its requests were sent"):
        timed(json.dumps(lines[1]))


@pytest.mark.parametrize(
    "line",
    [
        '{"a":' + " " * 500_000, "[" * 500_000, '"' * 500_000, ":" * 500_000, "a:" * 250_000, "\\x" * 300_000,
        f"{LINE.format(1, 'a')[:60]}" + " - " * 300_000, '{"host": "' + "a:" * 250_000, "method=status=" * 70_000,
        "2026-10-10T13:55:36Z " * 45_000, "GET /a " * 140_000, "1 " * 500_000, '{"log": ' * 120_000, "\x1b[" * 400_000,
    ],
    ids=range(14),
)  # fmt: skip
def test_a_long_line_takes_no_longer_than_its_length(line: str) -> None:
    """What takes a time that grows with the square of the length would take hours here."""
    with pytest.raises(UsageError):
        imported(f"{LINE.format(1, 'a').replace('200', '500')}\n{line}\n")
