"""The environment of a server: files of variables, what is passed of the lab's own, and what is secret of it."""

from pathlib import Path

import pytest

from redline.driving import secrets
from redline.errors import UsageError
from redline.launching.variables import (
    check_variables,
    hidden_in,
    offer_variables,
    secrets_of_compose,
    variables_of,
)
from redline.model import ServerEntry, Start, Variant


def entry(file: Path | None = None, env: dict[str, str] | None = None) -> ServerEntry:
    start = Start(command=("shop", "{port}"), env=env or {}, env_file=None if file is None else str(file))
    return ServerEntry(name="shop", about="a shop", runtime="", family_folder=".", start=start)


def refusal(file: Path | None = None, env: dict[str, str] | None = None) -> str:
    with pytest.raises(UsageError) as error:
        check_variables([Variant(entry=entry(file, env))])
    assert "s3cret" not in str(error.value)
    with pytest.raises(UsageError):
        variables_of(entry(file, env), {})
    return str(error.value)


def test_own_variables_go_before_those_of_the_file_and_these_before_the_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B", "C"):
        monkeypatch.setenv(name, "lab")
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    made = variables_of(entry(tmp_path / ".env", {"A": "own"}), {})
    assert (made.env["A"], made.env["B"], made.env["C"]) == ("own", "file", "lab")


def test_a_file_may_have_comments_quotes_and_names_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSED", "from-the-lab")
    (tmp_path / ".env").write_text("\ufeff# of the shop\nexport A=\"two words\" # so\nB='$HOME'\nC=${A}\nPASSED\nE=\n")
    made = variables_of(entry(tmp_path / ".env"), {})
    assert [made.env[name] for name in ("A", "B", "C", "PASSED", "E")] == [
        "two words",
        "$HOME",
        "${A}",
        "from-the-lab",
        "",
    ]
    assert {"two words", "from-the-lab"} <= set(made.secrets)


def test_requests_take_what_the_environment_lacks_from_the_files_of_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_of_files", {})
    monkeypatch.setenv("A", "lab")
    first, second = tmp_path / "a.env", tmp_path / "b.env"
    first.write_text("A=file\nB=s3cret\nPORT=1\n")
    second.write_text("A=other\nC=third\nPORT=2\n")
    variants = [Variant(entry=entry(file)) for file in (first, None, second)]
    offer_variables(variants, {"A", "B", "C"})
    assert secrets.with_secrets("${A} ${B} ${C}", "it") == "lab s3cret third"
    with pytest.raises(UsageError, match="it: the variable PORT is not set in the environment"):
        secrets.with_secrets("${PORT}", "it")
    second.write_text("B=another")
    with pytest.raises(
        UsageError, match=r"a request names \$\{B\}, which .*a\.env and .*b\.env set differently"
    ) as error:
        offer_variables(variants, {"B"})
    assert "s3cret" not in str(error.value)
    monkeypatch.setenv("B", "lab")
    offer_variables(variants, {"B"})
    assert secrets.with_secrets("${B}", "it") == "lab"


def test_what_is_passed_is_filled_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "{port}-${HOME}")
    made = variables_of(entry(env={"URL": "db://u:${PASSWORD}@localhost/{port}"}), {"port": "8000"})
    assert made.env["URL"] == "db://u:{port}-${HOME}@localhost/8000"
    assert made.secrets == ("{port}-${HOME}",)
    assert made.private == ("URL",)


def test_short_values_are_no_secrets_and_every_line_of_a_long_one_is(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('DEBUG=1\nLEVEL=debug\nKEY="line one\nline two\nend"\n')
    made = variables_of(entry(tmp_path / ".env", {"PLAIN": "not a secret"}), {})
    assert made.secrets == ("line one\nline two\nend", "line one", "line two")
    assert made.private == ("DEBUG", "LEVEL", "KEY")
    assert "line one" not in repr(made)


def test_what_is_wrong_is_said_without_any_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    assert "shop: `env`, TOKEN: the variable NOT_SET is not set" in refusal(env={"TOKEN": "${NOT_SET}"})
    file = tmp_path / ".env"
    assert f"there is no file {file}" in refusal(file)
    assert "Is a directory" in refusal(tmp_path)
    file.write_text("A=1\n\ns3cret of mine\n")
    assert f"{file}:3: this is no variable" in refusal(file)
    file.write_text("A=1\nNOT_SET\n")
    assert f"{file}:2: the variable NOT_SET is not set" in refusal(file)
    file.write_bytes(b"A=s3cret\xff\n")
    assert "is not UTF-8 text" in refusal(file)
    file.write_text("A=s3cret\n" * 40_000)
    assert "is longer than 256 KiB" in refusal(file)


def test_names_of_variables_in_which_there_may_be_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN", "1234")
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    made = variables_of(entry(tmp_path / ".env", {"A": "own", "C": "pin ${PIN}"}), {})
    assert (set(made.own), set(made.private)) == ({"A", "B", "C"}, {"B", "C"})


COMPOSE = """\
services:
  web:
    image: shop:1
    env_file: [web.env, {path: more.env, required: false}, gone.env]
    environment: {LEVEL: verbose-level, URL: "db://${PASSED}@db/$PLAIN", ALONE: }
    ports: !override ["8080"]
  db: {env_file: db.env, environment: [LISTED, "SET=in-the-file"]}
secrets: {key: {file: key.txt}, of_lab: {environment: KEPT}, theirs: {external: true}}
"""


def test_secrets_of_a_compose_file_come_from_files_and_the_environment_and_not_from_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PASSED", "PLAIN", "ALONE", "LISTED", "KEPT", "OTHER"):
        monkeypatch.setenv(name, f"lab-{name}")
    for name in (".env", "web.env", "more.env", "db.env"):
        (tmp_path / name).write_text(f"A='s3cret {name}'\nSHORT=1\n")
    (tmp_path / "key.txt").write_text("s3cret key\n")
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE)
    assert {text.strip() for text in secrets_of_compose(file)} == {
        *(f"s3cret {name}" for name in (".env", "web.env", "more.env", "db.env", "key")),
        *(f"lab-{name}" for name in ("PASSED", "PLAIN", "ALONE", "LISTED", "KEPT")),
    }


@pytest.mark.parametrize("text", ["services: [", "[]", "services: {web: [], db: {env_file: 3, environment: 4}}", "\0"])
def test_a_compose_file_that_says_nothing_of_use_has_the_secrets_beside_it(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text("A=swordfish\n")
    (tmp_path / "compose.yaml").write_text(text)
    assert secrets_of_compose(tmp_path / "compose.yaml") == ("swordfish",)
    assert secrets_of_compose(tmp_path / "nowhere" / "compose.yaml") == ()


def test_a_line_that_is_no_variable_is_hidden_where_an_error_quotes_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\ns3cret of mine\nB=swordfish\n")
    secrets = secrets_of_compose(tmp_path / "compose.yaml")
    text = 'unexpected character " " in variable name "s3cret of mine" beside swordfish'
    assert hidden_in(text, secrets) == 'unexpected character " " in variable name "***" beside ***'
    assert hidden_in(text, ()) == text
