"""Journeys in suites, in redline.yaml and in files of requests: what they become, and every mistake in them."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.driving.protocol import check_journey, deadline_ns, job, loggable_job
from redline.driving.verifying import verify_within_s
from redline.errors import DriveError, UsageError
from redline.model import Journey, Scenario, Suite
from redline.ports import Drive, Endpoint
from redline.suite import Catalogue, load_suite, make_plan, referenced_files
from redline.suite.project import read_project

SUITE = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios:
  - name: Checkout
    journey:
      rows: {file: users.csv, use: user}
      once:
        - {name: log in, post: /login, json: {user: "{row:name}", "pass{{seq}}": ["{row:password}", 1]},
           take: {token: {json: /token}}}
      again_at: 401
      steps:
        - {name: items, get: /items, take: {first: {json: /items/0/id}, page: {regex: 'p=(\\d+)'}}}
        - {name: item, think: 500ms, get: "/items/{take:first}", headers: {Authorization: "Bearer {take:token}"},
           expect: {status: [200, 304, 200]}, take: {first: {header: Location}, sid: {cookie: sid}}}
        - {name: buy, think: {exponential: 2s}, when: {item: 200}, post: /orders,
           form: {id: "{take:first}", "a b": [1, true, "x&y"]}, expect: {status: 201}}
loads: {users: {closed: {users: 2, think: 1s}, for: 2s}}
objective: ["buy: p99 < 1s", "Checkout/log in: errors < 1%"]
"""
ROWS = 'name,password,unused\nann,geheim1,1\n\nbob,"geheim2,x",2\n'


def read(folder: Path, text: str = SUITE, rows: str = ROWS) -> Suite:
    (folder / "users.csv").write_text(rows)
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml", Catalogue())


def drive_of(suite: Suite) -> Drive:
    cell = next(iter(make_plan(suite).cells.values()))
    return Drive(cell=cell, endpoint=Endpoint("127.0.0.1", 8099), seed=1, cpus=(), workers=1, log=Path("unused"))


def journey_of(suite: Suite) -> Journey:
    journey = suite.scenarios[0].journey
    assert journey is not None
    return journey


def test_a_journey_becomes_the_engines(tmp_path: Path) -> None:
    suite = read(tmp_path)
    made = job(drive_of(suite))
    assert made["journey"] == {
        "once": [{"request": 0, "take": [{"name": "token", "from": {"json": "/token"}}]}],
        "again_at": [401],
        "steps": [
            {
                "request": 1,
                "take": [
                    {"name": "first", "from": {"json": "/items/0/id"}},
                    {"name": "page", "from": {"regex": "p=(\\d+)"}},
                ],
            },
            {
                "request": 2,
                "think": {"fixed_ns": 500_000_000},
                "take": [{"name": "first", "from": {"header": "Location"}}, {"name": "sid", "from": {"cookie": "sid"}}],
            },
            {
                "request": 3,
                "think": {"exponential_ns": 2_000_000_000},
                "when": {"step": 1, "status": [200]},
                "take": [],
            },
        ],
        "rows": {
            "columns": ["name", "password"],
            "values": [["ann", "geheim1"], ["bob", "geheim2,x"]],
            "use": "user",
        },
        "cookies": True,
    }
    login, _, item, buy = made["requests"]
    assert login["body_text"] == '{{"user":"{row:name}","pass{{seq}}":["{row:password}",1]}}'
    assert (login["body_escape"], login["headers"]) == ("json", [["Content-Type", "application/json"]])
    assert item["expect"]["status"] == [200, 304]
    assert (buy["body_text"], buy["body_escape"]) == ("id={take:first}&a+b=1&a+b=true&a+b=x%26y", "form")
    assert buy["headers"] == [["Content-Type", "application/x-www-form-urlencoded"]]
    assert made["deadline_ns"] == deadline_ns(drive_of(suite)) > 26_000_000_000


def test_nothing_stored_or_shown_has_a_value_of_a_row(tmp_path: Path) -> None:
    suite = read(tmp_path)
    stored = suite.model_dump_json()
    assert "geheim" not in stored
    assert "ann" not in stored.replace("planned", "")
    assert "geheim" not in str(loggable_job(job(drive_of(suite))))
    assert Suite.model_validate_json(stored) == suite
    rows = journey_of(suite).rows
    assert rows is not None
    assert (rows.count, rows.secret, rows.shown) == (2, ("password",), ("name",))


def test_a_changed_password_is_read_and_other_rows_are_refused(tmp_path: Path) -> None:
    drive, file = drive_of(read(tmp_path)), tmp_path / "users.csv"
    file.write_text(ROWS.replace("geheim1", "neu"))
    assert job(drive)["journey"]["rows"]["values"][0] == ["ann", "neu"]
    for rows, says in (
        (ROWS.replace("ann", "eve"), "has other rows than when this was planned"),
        (f"{ROWS}eve,x,3\n", "has other rows than when this was planned"),
        (ROWS.replace("password", "pw", 1), "has other columns than when this was planned"),
        ("", "the file is empty"),
    ):
        file.write_text(rows)
        with pytest.raises(DriveError, match=says):
            job(drive)
    file.unlink()
    with pytest.raises(DriveError, match="cannot be read"):
        job(drive)


def test_results_are_by_step(tmp_path: Path) -> None:
    scenario = read(tmp_path).scenarios[0]
    assert scenario.unmeasured == 1
    assert scenario.several_labels == ("log in", "items", "item", "buy")
    assert scenario.statuses == {200, 201, 304}
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


CHAIN = """\
servers: [{{name: own, url: "http://127.0.0.1:8099"}}]
scenarios:
  - name: Chain
    journey:
      steps:
        - {{name: list, get: /list, expect: {{status: [200, 304]}}}}
        - {{name: item, when: {{list: 200}}, get: /item, take: {{id: {{json: /id}}}}}}
        - {{name: buy, when: {{item: 200}}, get: "/buy/{{take:id}}"}}
        - {{name: last, {when}get: "/last/{{take:id}}"}}
loads: {{users: {{closed: {{users: 2}}, for: 2s}}}}
"""


@pytest.mark.parametrize("when", ["when: {item: 200}, ", "when: {list: 200}, ", "when: {buy: 200}, "])
def test_a_value_of_a_step_with_a_condition_is_known_behind_it(when: str, tmp_path: Path) -> None:
    assert read(tmp_path, CHAIN.format(when=when)).scenarios[0].journey is not None


@pytest.mark.parametrize("when", ["", "when: {list: 304}, "])
def test_a_value_of_a_step_that_may_be_left_out_is_not_known(when: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`id` is not known if the step that takes it is left out") as refused:
        read(tmp_path, CHAIN.format(when=when))
    assert "`when: {item: 200}`" in refused.value.hint


@pytest.mark.parametrize(
    ("written", "instead", "field", "says", "hint"),
    [
        ('{take:first}", headers', '{take:frist}", headers', "steps[1]", "takes a value `frist`", "mean `first`?"),
        ("get: /items,", 'get: "/{take:first}",', "steps[0]", "from this step's answer", "an earlier step"),
        ("get: /items,", 'get: "/{take:sid}",', "steps[0]", "used before it is taken", "move the step"),
        ("when: {item: 200}", "when: {buy: 200}", "steps[2].when.buy", "does not come before this step", "earlier"),
        ("when: {item: 200}", "when: {it: 200}", "steps[2].when.it", "there is no step `it`", "mean `item`?"),
        ("when: {item: 200}", "when: {item: 200, items: 200}", "steps[2].when", "must have at most 1", ""),
        ("when: {item: 200}", "when: {item: 99}", "steps[2].when.item", "must be at least 200", ""),
        ("{row:password}", "{row:passwort}", "once[0]", "no column `passwort`", "did you mean `password`?"),
        ("name: buy", "name: items", "steps[2].name", "the step `items` is given twice", "rename"),
        ("again_at: 401", "again_at: [401, 304]", "steps[1].expect.status", "304 is right here", "remove"),
        ("{name: items, ", "{name: items, think: 1s, ", "steps[0].think", "no answer before the first step", "load's"),
        ("{regex: 'p=(\\d+)'}", "{regex: '(?<=p=)x'}", "steps[0].take.page.regex", "`(?<=` is not in", "group"),
        ("{cookie: sid}", "{cookie: sid, header: x}", "steps[1].take.sid", "has header and cookie", "exactly one"),
        ("{cookie: sid}", "{}", "steps[1].take.sid", "has no source", "exactly one"),
        ("{cookie: sid}", "{cookie: 'a b'}", "steps[1].take.sid.cookie", "is not such a name", ""),
        ("{json: /token}", "{json: token}", "once[0].take.token.json", "does not have the required form", ""),
        ("use: user}", "use: turn}", "once[0]", "`once` is a user's own", "use: user"),
        ("      rows: {file: users.csv, use: user}\n", "", "once[0]", "needs rows", "users.csv"),
        ("file: users.csv", "file: user.csv", "rows.file", "there is no file", "did you mean `users.csv`?"),
        ("file: users.csv", "file: ../users.csv", "rows.file", "leads out of the folder", ""),
        ("use: user", "use: users", "rows.use", "must be `user`, `turn` or `unique`", ""),
        ("expect: {status: 201}", "expect: {status: []}", "steps[2].expect.status", "must have at least 1", ""),
        ("post: /orders,", "post: /orders, body: x,", "steps[2].form", "has `body` and `form`", "in one way"),
        ("post: /orders,", "post: /orders, weight: 2,", "steps[2].weight", "unknown key `weight`", ""),
        ("name: buy,", "name: -buy,", "steps[2].name", "does not have the required form", ""),
        ('"x&y"', "{a: b}", "steps[2].form.a b", "a text, a number, or a list of them", "json"),
        ("      again_at", "      cookies: maybe\n      again_at", "cookies", "must be true or false", ""),
    ],
)  # fmt: skip
def test_every_mistake_is_named(tmp_path: Path, written: str, instead: str, field: str, says: str, hint: str) -> None:
    assert written in SUITE
    with pytest.raises(UsageError) as raised:
        read(tmp_path, SUITE.replace(written, instead, 1))
    problem = raised.value.problems[0]
    assert problem.place is not None
    assert problem.place.field == f"scenarios[0].journey.{field}"
    assert problem.place.line
    assert says in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("load", "field", "says"),
    [
        ("closed: {users: 3}", "closed.users", "2 rows, and 3 users"),
        ("closed: {users: 1, ramp: {to: 9, over: 1s}}", "closed.users", "2 rows, and 9 users"),
        ("closed: {users: 2, depth: 2}", "closed.depth", "one request after the other"),
        ("open: {rate: 9}", "open.connections", "2 rows, and 64 users"),
        ("open: {connections: 2, arrivals: {replay: times.txt}}", "open.arrivals", "not at times of a recording"),
    ],
)
def test_a_load_that_does_not_fit_is_refused(tmp_path: Path, load: str, field: str, says: str) -> None:
    (tmp_path / "times.txt").write_text("0.1\n")
    with pytest.raises(UsageError) as raised:
        read(tmp_path, SUITE.replace("closed: {users: 2, think: 1s}", load))
    (problem,) = raised.value.problems
    assert problem.place is not None
    assert problem.place.field == f"loads.users.{field}"
    assert says in problem.message


def test_an_open_load_without_users_takes_rows_in_turn(tmp_path: Path) -> None:
    text = SUITE.replace("closed: {users: 2, think: 1s}", "open: {rate: 9}").partition("objective:")[0]
    once = text[text.index("      once:") : text.index("      steps:")]
    text = text.replace(once, "").replace("/items,", '"/{row:name}",').replace("Bearer {take:token}", "x")
    with pytest.raises(UsageError, match="this open load has no users"):
        read(tmp_path, text)
    assert journey_of(read(tmp_path, text.replace(", use: user", ""))).rows is not None
    with pytest.raises(UsageError, match="no users to count"):
        read(tmp_path, text.replace(", use: user}", "}\n      users: 9"))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("name,name,password\na,b,c\n", "line 1|1:1.*`name` is named twice"),
        ("name,password\nann\n", "2:1.*has 1 values"),
        ("name,password\n", "there is no row"),
        ('name,password\nann,"x"y"\n', "2:1.*not CSV"),
    ],
)
def test_wrong_rows_are_refused_and_never_quoted(tmp_path: Path, rows: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        read(tmp_path, rows=rows)
    assert "ann" not in str(raised.value)


def test_a_header_takes_no_control_characters(tmp_path: Path) -> None:
    text = SUITE.replace("Bearer {take:token}", "{row:password}")
    with pytest.raises(UsageError, match=r"users.csv, line 3: this `password` has a control character"):
        read(tmp_path, text, 'name,password\nann,x\nbob,"y\tz"\n')


def test_a_value_of_a_row_may_have_line_breaks_of_any_kind(tmp_path: Path) -> None:
    lines, separators = "ann\r\nlee", "x\x0cy\u2028z"
    (tmp_path / "users.csv").write_bytes(f'name,password\r\n"{lines}",{separators}\r\nbob,y\r\n'.encode())
    (tmp_path / "suite.yaml").write_text(SUITE)
    suite = load_suite(tmp_path / "suite.yaml", Catalogue())
    assert job(drive_of(suite))["journey"]["rows"]["values"] == [[lines, separators], ["bob", "y"]]


def test_only_journeys_take_values(tmp_path: Path) -> None:
    text = SUITE[: SUITE.index("    journey:")] + '    get: "/{take:x}"\n' + SUITE[SUITE.index("loads:") :]
    with pytest.raises(UsageError, match=r"`\{take:x\}` is known in a journey alone"):
        read(tmp_path, text.replace('objective: ["buy: p99 < 1s", "Checkout/log in: errors < 1%"]\n', ""))
    with pytest.raises(UsageError, match="cannot be filled in"):
        read(tmp_path, text.replace("{take:x}", "{take:}"))


def test_a_driver_of_a_package_takes_no_journey(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which only redline-engine takes"):
        read(tmp_path, f"{SUITE}driver: loop\n")


def test_duets_take_no_unique_rows_and_no_same_answers(tmp_path: Path) -> None:
    steps = "[{get: '/{row:name}'}, {get: '{take:next}'}]"
    head = SUITE[: SUITE.index("      rows:")].replace(
        '"http://127.0.0.1:8099"}]', '"http://127.0.0.1:8099"}, {name: b, url: "http://127.0.0.1:8098"}]'
    )
    take = steps.replace("name}'}", "name}', take: {next: {header: Location}}}")
    tail = f"      rows: {{file: users.csv, use: unique}}\n      steps: {take}\n{SUITE[SUITE.index('loads:') :]}"
    text = f"{head}{tail.partition('objective:')[0]}baseline: own\n"
    with pytest.raises(UsageError, match="in duets all servers get the same rows"):
        read(tmp_path, text)
    assert journey_of(read(tmp_path, f"{text}design: interleaved\n")).rows is not None
    with pytest.raises(UsageError, match="values of each server's own"):
        read(tmp_path, text.replace("unique", "turn") + "same_answers: true\n")


ONCE_EACH = f"""\
{SUITE[: SUITE.index("    journey:")]}\
    journey: {{rows: {{file: users.csv, use: unique}}, steps: [{{get: "/{{row:name}}"}}]}}
loads: {{users: {{closed: {{users: 2}}, for: 2s}}}}
"""


def test_no_row_is_taken_by_the_check_and_by_the_load(tmp_path: Path) -> None:
    drive = drive_of(read(tmp_path, ONCE_EACH, f"{ROWS}eve,x,3\n"))
    checked = check_journey(drive.cell, drive.endpoint, timeout_ns=1, keep_bytes=1)
    assert checked["journey"]["rows"]["values"] == [["eve"]]
    assert job(drive)["journey"]["rows"]["values"] == [["ann"], ["bob"]]
    drive = drive_of(read(tmp_path, ONCE_EACH.replace("unique", "turn")))
    checked = check_journey(drive.cell, drive.endpoint, timeout_ns=1, keep_bytes=1)
    assert checked["journey"]["rows"]["values"] == job(drive)["journey"]["rows"]["values"][:1] == [["ann"]]


@pytest.mark.parametrize(
    ("more", "rows", "says"),
    [
        ("", "name\nann\n", "the check before the load takes the only row"),
        ("warmup_by: {users: 2}\n", ROWS, "a load to warm up would take them first"),
    ],
)
def test_rows_that_are_taken_once_serve_a_single_load(tmp_path: Path, more: str, rows: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, ONCE_EACH + more, rows)


def test_a_search_takes_no_rows_that_are_taken_once(tmp_path: Path) -> None:
    read(tmp_path, ONCE_EACH.replace("closed: {users: 2}", "open: {rate: 9}"))
    done = CliRunner().invoke(app, ["limit", str(tmp_path / "suite.yaml"), "--objective", "p99 < 1s"])
    assert isinstance(done.exception, UsageError), done.exception
    assert "takes no row twice, and every probe of a search begins with the first" in str(done.exception)


PROJECT = "start: ./server --port {port}\n"
STEPS = "journey: {rows: users.csv, steps: [{name: a, get: '/{row:name}'}, {get: /b}]}\n"


def test_a_project_has_a_journey(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "users.csv").write_text(ROWS)
    (tmp_path / "sub" / "users.csv").write_text(ROWS)
    (tmp_path / "sub" / "steps.yaml").write_text(STEPS)
    files = referenced_files(tmp_path / "redline.yaml")
    for text, folder in (
        (PROJECT + STEPS, tmp_path),
        (f"{PROJECT}requests: {{file: sub/steps.yaml}}\n", tmp_path / "sub"),
    ):
        (scenario,) = read_project(text, "redline.yaml", files).scenarios
        assert (scenario.name, scenario.several_labels) == ("journey", ("a", "GET /b"))
        assert scenario.journey is not None
        assert scenario.journey.rows is not None
        assert Path(scenario.journey.rows.file) == folder / "users.csv"


@pytest.mark.parametrize(
    ("text", "file", "says"),
    [
        (f"{PROJECT}check: {{get: /}}\n{STEPS}", STEPS, "is in `check` and in `journey`"),
        (f"{PROJECT}requests: {{file: steps.yaml}}\n", f"{STEPS}weight: 2\n", "steps.yaml:2:1.*`weight` cannot stand"),
        (f"{PROJECT}requests: {{file: steps.yaml}}\n", STEPS.replace("/b", "b"), "steps.yaml:1:.*is not a path"),
        (f"{PROJECT}check: {{get: '/{{row:x}}'}}\n", STEPS, "in a journey alone"),
    ],
)
def test_a_wrong_journey_of_a_project_is_named(tmp_path: Path, text: str, file: str, says: str) -> None:
    (tmp_path / "users.csv").write_text(ROWS)
    (tmp_path / "steps.yaml").write_text(file)
    with pytest.raises(UsageError, match=says):
        read_project(text, "redline.yaml", referenced_files(tmp_path / "redline.yaml"))


def test_requests_outside_journeys_have_json_and_forms(tmp_path: Path) -> None:
    head, tail = SUITE[: SUITE.index("    journey:")], SUITE[SUITE.index("loads:") : SUITE.index("objective:")]
    made = list[tuple[bytes, Any]]()
    for written in (
        "json: {a: [1, null, 'ü']}",
        "json: 'x'\n    headers: {content-type: a/b}",
    ):
        request = read(tmp_path, f"{head}    post: /\n    {written}\n{tail}").scenarios[0].request
        assert request.body is not None
        made.append((request.body.content(), request.headers))
    assert made == [
        ('{"a":[1,null,"ü"]}'.encode(), {"Content-Type": "application/json"}),
        (b'"x"', {"content-type": "a/b"}),
    ]


TURNS = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios:
  - name: Chat
    journey:
      steps:
        - {name: ask, post: /chat, json: {stream: true}, stream: openai,
           take: {answer: {text: /choices/0/delta/content}, id: {header: X-Id}}}
        - {name: ask again, think: 1s, post: /chat, stream: {events: openai, for: 20s},
           json: {stream: true, messages: [{role: assistant, content: "{take:answer}"}]}}
loads: {users: {closed: {users: 2}, for: 2s}}
"""


def test_the_text_of_a_conversation_is_carried_on(tmp_path: Path) -> None:
    suite = read(tmp_path, TURNS)
    assert journey_of(suite).gathers
    made = job(drive_of(suite))
    taken = [
        {"name": "answer", "from": {"text": "/choices/0/delta/content"}},
        {"name": "id", "from": {"header": "X-Id"}},
    ]
    assert made["journey"]["steps"][0] == {"request": 0, "take": taken}
    assert [request["stream"]["events"] for request in made["requests"]] == ["sse", "sse"]
    assert made["requests"][1]["body_escape"] == "json"
    # The check follows conversations to their end.
    assert verify_within_s(drive_of(suite).cell) == 50
    assert verify_within_s(drive_of(read(tmp_path)).cell) <= 30


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        ("{text: /choices/0/delta/content}", "{json: /id}", "the messages of a conversation are not kept as a body"),
        ("{text: /choices/0/delta/content}", "{regex: x}", "the messages of a conversation are not kept as a body"),
        ("{header: X-Id}", "{text: /id}", "one text is gathered of a conversation"),
        ("stream: openai,", "", "a `text` is gathered from the messages of a conversation"),
        ("{text: /choices", "{text: choices", "text"),
    ],
)
def test_what_conversations_do_not_keep_is_refused(tmp_path: Path, written: str, instead: str, says: str) -> None:
    assert written in TURNS
    with pytest.raises(UsageError) as raised:
        read(tmp_path, TURNS.replace(written, instead))
    assert says in str(raised.value)


TALK = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios:
  - name: Talk
    journey:
      steps:
        - {name: log in, post: /login, take: {room: {json: /room}}}
        - name: talk
          think: 1s
          websocket:
            path: "/chat/{take:room}"
            headers: {X-Room: "{take:room}"}
            send: {json: {in: "{take:room}"}}
            receive: {until: 3}
          take: {answer: {text: /delta}, turn: {header: X-Turn}}
        - {name: again, post: /again, json: {said: "{take:answer}"}, headers: {X-Turn: "{take:turn}"}}
loads: {users: {closed: {users: 2}, for: 2s}}
"""


ALONE = "          websocket: {path: /chat, send: hello}\n"


def test_a_step_may_be_a_websocket(tmp_path: Path) -> None:
    suite = read(tmp_path, TALK)
    scenario = suite.scenarios[0]
    assert (scenario.labels, scenario.writes) == (("log in", "talk", "again"), ("log in", "talk", "again"))
    made = job(drive_of(suite))
    assert made["journey"]["steps"][1] == {
        "request": 1,
        "think": {"fixed_ns": 1_000_000_000},
        "take": [{"name": "answer", "from": {"text": "/delta"}}, {"name": "turn", "from": {"header": "X-Turn"}}],
    }
    talk = made["requests"][1]
    assert (talk["method"], talk["path"], talk["websocket"]["answer"]) == ("GET", "/chat/{take:room}", "listen")
    assert (talk["body_text"], talk["body_escape"]) == ('{{"in":"{take:room}"}}', "json")
    assert (talk["stream"]["events"], talk["stream"]["until"]) == ("messages", 3)
    assert ["X-Room", "{take:room}"] in [list(header) for header in talk["headers"]]


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        (
            "            receive: {until: 3}\n",
            "",
            "has placeholders, and a connection is opened once for many messages",
        ),
        (
            TALK[TALK.index("          websocket:") : TALK.index("          take:")],
            ALONE,
            "says when this conversation is",
        ),
        ("think: 1s", "headers: {A: b}", "`headers` cannot be combined with `websocket`"),
        ("think: 1s", "get: /", "this step has get and websocket"),
        ("post: /login, ", "", "this step has no method"),
        ("{text: /delta}", "{json: /delta}", "the messages of a conversation are not kept as a body"),
        ("{name: again,", "{name: again, when: {talk: 200},", "is a WebSocket, whose messages have no status"),
        ('send: {json: {in: "{take:room}"}}', 'send: "{take:answer}"', "is taken from this step's answer"),
        ('url: "http://127.0.0.1:8099"', 'url: "http://127.0.0.1:8099", http: 2', "is a step of a journey, so"),
    ],
)
def test_what_a_step_on_a_websocket_cannot_be_is_refused(tmp_path: Path, written: str, instead: str, says: str) -> None:
    assert written in TALK
    with pytest.raises(UsageError) as raised:
        read(tmp_path, TALK.replace(written, instead))
    assert says in str(raised.value)
