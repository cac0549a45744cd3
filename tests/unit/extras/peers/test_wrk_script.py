# ruff: noqa: E501, ISC004 - a script a line
"""Scripts of wrk, recognised by what they do: what they send is known, or they are refused at a line."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.cli.command_line import LoadFlags
from redline.cli.commands.load import as_like
from redline.errors import UsageError
from redline.extras.peers.like import read_like
from redline.extras.peers.lua_values import FileText
from redline.extras.peers.wrk_script import Script, ScriptRequest, Target, read_script

URL = "http://127.0.0.1:8080"
PIPELINE = """
-- requests in a pipeline: -- PATH DEPTH
init = function(args)
   path = args[1]
   depth = tonumber(args[2]) or 1
   local r = {}
   for i = 1, depth do
      r[i] = wrk.format(nil, path)
   end
   req = table.concat(r)
end

request = function()
   return req
end
"""


def read(source: str, *arguments: str) -> Script:
    return read_script(source, "script.lua", Target("/items", (("A", "b"),)), arguments)


def sent(
    method: str = "GET", path: str = "/items", body: str | FileText | None = None, **headers: str
) -> ScriptRequest:
    more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return ScriptRequest(method, path, (("A", "b"), *more), body)


@pytest.mark.parametrize(
    ("source", "request_"),
    [
        ("", sent()),
        ("wrk.method = 'PUT'; wrk.path = '/a?b'", sent("PUT", "/a?b")),
        (
            'wrk.method = "POST"\nwrk.body   = "a=1&b=2"\nwrk.headers["Content-Type"] = "application/x"',
            sent("POST", body="a=1&b=2", Content_Type="application/x"),
        ),
        ("token = 'abc'; wrk.headers['Authorization'] = 'Bearer ' .. token", sent(Authorization="Bearer abc")),
        ("wrk.headers['a'] = 'c'", ScriptRequest("GET", "/items", (("a", "c"),), None)),
        ("wrk.headers['Content-Length'] = 3", sent()),
        ("request = function() return wrk.format('DELETE', '/x/' .. 7) end", sent("DELETE", "/x/7")),
        (
            "function request() return wrk.format(nil, nil, {X = '1'}, 'y') end",
            ScriptRequest("GET", "/items", (("X", "1"),), "y"),
        ),
        (
            "function request() wrk.headers['X'] = '1'; path = '/y'; return wrk.format(nil, path) end",
            sent(path="/y", X="1"),
        ),
        ("function init() wrk.path = '/z' end function request() return wrk.request() end", sent(path="/z")),
        ("n = 0; function request() n = n + 1; return wrk.request() end function done() print(n) end", sent()),
        ("function response(status) if status ~= 200 then bad = (bad or 0) + 1; print(bad) end end", sent()),
        (
            "local id = 1; function setup(thread) thread:set('id', id); id = id + 1 end function init() print(id) end",
            sent(),
        ),
        ("wrk.body = string.rep('x', 3) .. ('%d-%s'):format(4, 'y'):upper()", sent(body="xxx4-Y")),
        ("local f = io.open('row.json', 'rb'); wrk.body = f:read('*all'); f:close()", sent(body=FileText("row.json"))),
        ("math.randomseed(os.time()); unused = math.random(9)", sent()),
        ("local t = {'/a', '/b'}; for i, p in ipairs(t) do if i == #t then wrk.path = p end end", sent(path="/b")),
        ('wrk.body = [[\n{"a": 1}]] --[[ more\n]]', sent(body='{"a": 1}')),
        ("local i = 0; while i < 3 do i = i + 1; if i == 2 then break end end; wrk.path = '/' .. i", sent(path="/2")),
    ],
)
def test_a_script_with_constants_sends_one_request(source: str, request_: ScriptRequest) -> None:
    assert read(source).requests == (request_,)


def test_a_pipeline_has_as_many_requests_as_its_argument_says() -> None:
    assert read(PIPELINE, "/v1/pets", "16").requests == (sent(path="/v1/pets"),) * 16
    assert read(PIPELINE, "/v1/pets").requests == (sent(path="/v1/pets"),)


def test_a_header_that_is_set_after_a_request_was_made_is_not_in_it() -> None:
    late = PIPELINE.replace("   return req", "   wrk.headers['Tenant'] = '1'\n   return req")
    early = PIPELINE.replace("   local r", "   wrk.headers['Tenant'] = '1'\n   local r")
    assert read(late, "/", "2").requests == (sent(path="/"),) * 2
    assert read(early, "/", "2").requests == (sent(path="/", Tenant="1"),) * 2


def test_a_pipeline_may_have_several_requests() -> None:
    source = "function init() r = wrk.format(nil, '/a') .. wrk.format('HEAD', '/b') end function request() return r end"
    assert read(source).requests == (sent(path="/a"), sent("HEAD", "/b"))


def test_a_constant_delay_is_a_think_time() -> None:
    assert read("function delay() return 5 * 4 end").think_ms == 20
    assert read("function delay() return 0 end").think_ms is None


def test_it_names_the_functions_that_it_leaves_out() -> None:
    assert read("function response() n = 1 end function done() end").ignored == ("`response`", "`done`")


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("n = 0\nrequest = function()\n n = n + 1\n return wrk.format(nil, '/' .. n) end", 3, "the path is not known: n ch"),
        ("function request()\n return wrk.format(nil, '/' .. math.random(9)) end", 2, "the path is not known: `math.r"),
        ("function request()\n wrk.headers.N = os.clock()\n return wrk.format() end", 2, "the header N is not known: `os"),
        ("function request()\n return wrk.format(nil, nil, nil, math.random()) end", 2, "the body is not known"),
        ("wrk.body = 'a'\nfunction request()\n wrk.body = wrk.body .. 'a'\n return wrk.format() end", 3, "the body"),
        (
            "n = 0\nfunction request()\n n = n + 1\n if n % 2 == 0 then return wrk.format(nil, '/a') end\n"
            " return wrk.format(nil, '/b') end",
            4,
            "what follows depends on what is not known: n changes",
        ),
        (
            "path = '/sign-in'\nfunction request()\n return wrk.format(nil, path) end\n"
            "function response(s, h)\n path = '/items' end",
            5,
            "the path is not known: path: answers change it",
        ),
        (
            "paths = {}\nfor line in io.lines('p') do\n table.insert(paths, line) end\n"
            "function request() return wrk.format(nil, paths[1]) end",
            3,
            "the path is not known: `io.lines`",
        ),
        ("function setup(thread)\n thread.addr = wrk.lookup('x', 80)[1] end", 2, "`setup` sends threads to several"),
        ("function setup(t)\n t:set('id', 1) end\nfunction request()\n return wrk.format(nil, '/' .. id) end", 2, "setup"),
        ("function response()\n wrk.thread:stop() end", 2, "it stops a thread"),
        ("function delay()\n return math.random(10, 50) end", 2, "what `delay` returns is not known: `math.random`"),
        ("function delay() return 1 end\nfunction request() return wrk.request() .. wrk.request() end", 1, "no `delay` b"),
        ("function request() return 'GET / HTTP/1.1' end", 1, "`request` returns no request"),
        ("function init()\n wrk.host = 'x' end", 2, "it changes `wrk.host`"),
        ("\ndofile('other.lua')", 2, "`dofile` runs another script"),
        ("while true do end", 1, "it takes more than 100,000 steps"),
        ("wrk.path = 'items'", 0, "the path `items` does not begin with /"),
        ("wrk.path =\n= 3", 2, "this is not Lua: `=` is not expected here"),
        ("function request(", 1, "this is not Lua: the script ends too early"),
        ("x = '\\200'", 1, "is not ASCII"),
        ("function f() return f() end f()", 0, "it nests too deeply"),
        ("s = 'x'; for i = 1, 99 do s = s .. s end wrk.body = s", 1, "a text of more than 1 MiB"),
    ],
)  # fmt: skip
def test_a_script_that_does_more_is_refused_at_its_line(source: str, line: int, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        read(source)
    assert str(error.value).startswith(f"script.lua:{line}:" if line else "script.lua:")


@given(st.text(alphabet="abfnrx01=(){}[]'\"\\.,:+-# \n", max_size=60))
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        found = str(read(source).requests[0].path)
    except UsageError as error:
        found = str(error)
    assert found.startswith(("/", "script.lua"))


@given(
    st.lists(
        st.sampled_from(
            ["n = n + 1", "p = '/x'", "p = '/' .. n", "wrk.path = p", "t[1] = p", "p = t[1]", "if n > 2 then n = 0 end"]
        ),
        max_size=5,
    )
)
def test_what_is_read_is_what_an_interpreter_sends_each_time(statements: list[str]) -> None:
    """Against a model of these statements that is executed, request by request."""
    source = "n = 0\np = '/0'\nt = {}\nfunction request()\n" + "\n".join(statements) + "\nreturn wrk.format() end"
    try:
        known = read(source).requests[0].path
    except UsageError:
        return
    n, p, t, path = 0, "/0", "/none", "/items"
    for _ in range(8):
        for statement in statements:
            match statement:
                case "n = n + 1":
                    n += 1
                case "p = '/x'":
                    p = "/x"
                case "p = '/' .. n":
                    p = f"/{n}"
                case "wrk.path = p":
                    path = p
                case "t[1] = p":
                    t = p
                case "p = t[1]":
                    p = t
                case _:
                    n = 0 if n > 2 else n
        assert path == known


def like(folder: Path, source: str, command: str) -> dict[str, object]:
    (folder / "s.lua").write_text(source)
    return dict(read_like(command.format(s=folder / "s.lua", url=URL)).flags)


def test_the_literal_command_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "pipeline.lua").write_text(PIPELINE)
    command = f"wrk -t4 -c128 -d30s {URL} -s {tmp_path}/pipeline.lua -H 'J-Tenant-Id: 1' --latency -- /v1/pets 16"
    read_ = read_like(command)
    expected = {
        "url": f"{URL}/v1/pets",
        "method": "GET",
        "headers": ["J-Tenant-Id: 1"],
        "depth": 16,
        "connections": 128,
        "threads": 4,
        "duration": "30s",
    }
    assert {name: read_.flags[name] for name in expected} == expected
    assert "writes 16 requests at once" in " ".join(read_.says)


def test_a_script_gives_flags_of_a_single_request(tmp_path: Path) -> None:
    source = "wrk.method = 'POST'; wrk.body = '{seq}'; wrk.headers.T = 'u'; function delay() return 2.5 end"
    flags = like(tmp_path, source, "wrk -s {s} {url}/a")
    assert (flags["method"], flags["body"], flags["think"]) == ("POST", "{{seq}}", "2.5ms")
    assert (flags["url"], flags["headers"], flags["depth"]) == (f"{URL}/a", ["T: u"], 1)


def test_wrk2_reads_scripts_too(tmp_path: Path) -> None:
    flags = like(tmp_path, PIPELINE, "wrk -R2k -s {s} {url} -- /x 4")
    assert (flags["rate"], flags["depth"], flags["url"]) == ("2000", 4, f"{URL}/x")
    with pytest.raises(UsageError, match="has a `delay`, and -R a rate"):
        like(tmp_path, "function delay() return 2 end", "wrk -R2k -s {s} {url}")


def test_several_requests_are_a_list(tmp_path: Path) -> None:
    source = "function request() return wrk.format(nil, '/a') .. wrk.format('POST', '/b', nil, 'x') end"
    (tmp_path / "s.lua").write_text(source)
    read_ = read_like(f"wrk -H 'A: b' -s {tmp_path}/s.lua {URL}/c")
    assert read_.requests == (
        {"name": "request-1", "get": "/a", "headers": {"A": "b"}},
        {"name": "request-2", "post": "/b", "headers": {"A": "b"}, "body": "x"},
    )
    assert (read_.flags["url"], read_.flags["depth"]) == (URL, 2)


def test_a_body_from_a_file_stays_one(tmp_path: Path) -> None:
    assert like(tmp_path, "wrk.body = io.open('a.json'):read('*a')", "wrk -s {s} {url}")["body"] == "@a.json"
    with pytest.raises(UsageError, match="a body that begins with @"):
        like(tmp_path, "wrk.body = '@a'", "wrk -s {s} {url}")


def test_flags_beside_a_script_take_precedence(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text(PIPELINE)
    flags, _ = as_like(LoadFlags(like=f"wrk -s {tmp_path}/s.lua {URL} -- /x 4", depth=2))
    assert (flags.depth, flags.url) == (2, f"{URL}/x")
