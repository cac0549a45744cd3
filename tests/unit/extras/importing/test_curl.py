"""Command lines of curl as requests: what they ask, and what is refused."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.extras.importing.curl import read_curl
from redline.suite.pasted import begins_curl, is_curl, split_curl

FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = ["Content-Type: application/json", "Accept: application/json"]
URL = "http://h:1/x"


@pytest.mark.parametrize(
    ("text", "method", "headers", "body"),
    [
        (URL, None, [], None),
        (f"-sS -XPUT '{URL}' -H 'A: b' -H 'Connection: close' -H 'Expect:' -L", "PUT", ["A: b"], None),
        (f"{URL} -d a=1 --data-raw b=2", None, [FORM], "a=1&b=2"),
        (f"-d=1 -s -- {URL}", None, [FORM], "=1"),
        (f"{URL} -d '{{}}' -H 'content-type: text/x'", None, ["content-type: text/x"], "{}"),
        (f"--json '{{}}' {URL}", None, JSON, "{}"),
        (f"{URL} --data-binary @item.json", None, [FORM], "@item.json"),
        (f"-I --url {URL} -A me -b c=1", "HEAD", ["User-Agent: me", "Cookie: c=1"], None),
        (
            f"{URL} -d a=1 --data-urlencode 'b=c d&e' --data-urlencode '=f g' --data-raw h",
            None,
            [FORM],
            "a=1&b=c+d%26e&f+g&h",
        ),
        (f"{URL} -k --proto '=https' -fsSL --max-redirs 3 -c jar.txt", None, [], None),
        (f"{URL} -u user:pass", None, ["Authorization: Basic dXNlcjpwYXNz"], None),
        (f"{URL} --oauth2-bearer abc", None, ["Authorization: Bearer abc"], None),
        (f"{URL} -u user:pass -H 'authorization: mine'", None, ["authorization: mine"], None),
        (f"{URL} --json '{{\"a\":' --json '1}}'", None, JSON, '{"a":1}'),
        (f"{URL} --compressed -o /dev/null", None, ["Accept-Encoding: deflate, gzip"], None),
        (f"{URL} --compressed -H 'accept-encoding: gzip'", None, ["accept-encoding: gzip"], None),
        (f"{URL} -A me -b c=1 -H 'User-Agent: you' -H 'Cookie:'", None, ["User-Agent: you"], None),
    ],
)
def test_a_command_of_curl_is_a_request(text: str, method: str | None, headers: list[str], body: str | None) -> None:
    flags = read_curl(shlex.split(text))
    assert (flags.url, flags.method, flags.headers, flags.body) == (URL, method, headers, body)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (f"-G {URL} -d a=1 --data-urlencode 'b=c d'", f"{URL}?a=1&b=c+d"),
        (f"-G '{URL}?z=0' -d a=1", f"{URL}?z=0&a=1"),
        (f"-G '{URL}#part' -d a=1", f"{URL}?a=1"),
        (f"-g '{URL}/[1-3]'", f"{URL}/[1-3]"),
        (f"'{URL}/{{id}}'", f"{URL}/{{id}}"),
    ],
)
def test_data_may_be_the_query(text: str, url: str) -> None:
    flags = read_curl(shlex.split(text))
    assert (flags.url, flags.method, flags.headers, flags.body) == (url, None, [], None)


@pytest.mark.parametrize(
    "text",
    [
        f"curl {URL} \\\n -H 'A: b' --data-raw $'it\\'s \\u0021'",
        f'$ curl {URL} \\\n -H "A: b" --data-raw "it\'s !"',
        f"/usr/bin/curl -s {URL} -H 'A: b' --data-raw \"it's !\" 2>/dev/null | jq . > out.json",
    ],
)
def test_a_command_may_be_one_text(text: str) -> None:
    program, *words = split_curl(text)
    assert is_curl(program)
    flags = read_curl(words)
    assert (flags.url, flags.headers, flags.body) == (URL, ["A: b", FORM], "it's !")


def test_the_way_to_the_server_is_read_by_the_names_of_flags() -> None:
    text = (
        "-k --http2 --cacert ca.pem -E c.pem --key c.key --unix-socket /s --resolve h:1:127.0.0.1 --resolve h:2:::1 "
        "--connect-to ::h:1 --interface 127.0.0.2 --tls-max 1.2 --ciphers A:B --no-sessionid https://h:1/x"
    )
    assert read_curl(text.split()).way == {
        "insecure": True,
        "http2": True,
        "no_session_resumption": True,
        "unix_socket": "/s",
        "tls_max": "1.2",
        "cacert": "ca.pem",
        "cert": "c.pem",
        "key": "c.key",
        "ciphers": "A:B",
        "sources": ["127.0.0.2"],
        "resolve": ["h:1:127.0.0.1", "h:2:::1"],
        "connect_to": ["::h:1"],
    }
    assert read_curl(["--tlsv1.2", "https://h:1/x"]).way == {}
    assert read_curl(["-x", "http://p:1", "-p", "http://h:1/x"]).way == {"proxy": "http://p:1"}
    assert read_curl(["-x", "p:1", "-U", "me:a@b", "http://h:1/x"]).way == {"proxy": "me:a%40b@p:1"}
    assert read_curl(["--tlsv1.3", "--tls13-ciphers", "C", "https://h:1/x"]).way == {"tls_min": "1.3", "ciphers": "C"}


def test_cookies_are_joined_and_values_may_begin_like_options() -> None:
    words = [URL, "-b", "a=1", "--cookie", "b=2; c=3", "-d", "-1", "--data-raw", "--x", "-H", "-A: b"]
    request = read_curl(words)
    assert request.headers == ["-A: b", "Cookie: a=1; b=2; c=3", FORM]
    assert request.body == "-1&--x"


def test_the_scheme_may_be_missing() -> None:
    assert read_curl(["localhost:8080/x"]).url == "http://localhost:8080/x"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-X GET", "has no URL"),
        (f"{URL} {URL}", "has several URLs"),
        (f"-T a {URL}", "-T has no counterpart"),
        (f"{URL} --cert c.pem:secret", "--cert c.pem:…: the key has a password"),
        (f"{URL} --tls-max 1.1", "--tls-max 1.1: the engine has TLS 1.2 and 1.3"),
        (f"{URL} --interface eth0", "--interface eth0: this is not an address"),
        (f"{URL} --tls13-ciphers A", "--tls13-ciphers leaves the suites of TLS 1.2 open"),
        (f"--upload-file a {URL}", "--upload-file has no counterpart"),
        (f"{URL} -b cookies.txt", "-b cookies.txt: this is a file"),
        (f"{URL} -H @headers.txt", "-H @headers.txt: headers are not read from files"),
        (f"{URL} -H 'A;'", "'A;' is not a header with a value"),
        (f"{URL} -d @-", "the body is read from the standard input"),
        (f"{URL} -G -d @a", "-G -d @a: a file is not a query"),
        (f"{URL} --data-urlencode @a", "--data-urlencode @a: files are not encoded"),
        (f"{URL} -u user", "-u user: curl asks for the password"),
        (f"'{URL}/[1-9]'", "curl makes several URLs of `[1-9]`"),
        (f"'{URL}/{{a,b}}'", "curl makes several URLs of `{a,b}`"),
        (f"'{URL}' ^ -H 'A: b'", "`^` is for the command prompt of Windows"),
        (f"{URL} --frobnicate", "--frobnicate is not known"),
        (f"{URL} -H", "curl: argument -H"),
        (f"{URL} -d @a -d b", "the body is a and more"),
        (f"{URL} -d --", "curl -d--: the value -- cannot be given here"),
        (f"{URL} --json=--", "curl --json=--: the value -- cannot be given here"),
        (f"{URL} -u 'a:\ud83d'", "half of a character, or a NUL"),
        (f"{URL} --data-urlencode '\ude00'", "half of a character, or a NUL"),
        (f"{URL} --data-raw 'a\0b'", "half of a character, or a NUL"),
        (f"{URL} --data-raw @mention", "--data-raw @mention: a text cannot begin with `@`"),
    ],
)
def test_what_has_no_counterpart_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_curl(shlex.split(text))
    assert says in str(refused.value)
    assert refused.value.hint


@given(st.lists(st.text(), max_size=5))
def test_any_command_line_is_read_or_refused(words: list[str]) -> None:
    try:
        assert read_curl(words).url
    except UsageError:
        return


@given(st.lists(st.characters(codec="utf-8") | st.characters(categories=["Cs"]), max_size=5))
def test_any_option_takes_any_characters_or_is_refused(characters: list[str]) -> None:
    text = "".join(characters)
    for option in ("-u", "-H", "-d", "-b", "-F", "--form-string", "--data-urlencode", "--json"):
        try:
            assert read_curl([URL, option, f"a:{text}"]).url
        except UsageError:
            continue


def test_what_is_about_the_connection_is_no_header() -> None:
    made = read_curl(["-k", "--http2", "https://h/x"])
    assert (made.url, made.headers) == ("https://h/x", [])


@pytest.mark.parametrize(
    ("line", "begins"),
    [("curl x", True), ("  $ curl x", True), ("/usr/bin/curl -s", True), ("curly x", False), ("./x curl", False)],
)
def test_a_line_may_begin_a_command(line: str, begins: bool) -> None:
    assert begins_curl(line) is begins
