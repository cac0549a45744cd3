"""Commands that are written for a shell."""

import shlex

import pytest

from redline.errors import UsageError, WrongValueError
from redline.schema.shell import for_a_shell, read_command, words_for_a_shell
from redline.suite.catalogue import read_family


@pytest.mark.parametrize(
    ("text", "word", "advice"),
    [
        ("PORT={port} ./server", "PORT={port}", "write `env PORT={port} ./server`"),
        ("cd app && ./server {port}", "cd", "write `sh -c 'cd app && ./server {port}'`"),
        ("./server {port} && true", "&&", "write `sh -c "),
        ("./prepare; ./server {port}", "./prepare;", "write `sh -c "),
        ("./server {port} > log", ">", "leave it out: the output goes to a log"),
        ("./server {port} 2>&1", "2>&1", "leave it out: the output"),
        ("./server {port} >/dev/null", ">/dev/null", "leave it out: the output"),
        ("./server {port} < config", "<", "write `sh -c "),
        ("./server {port} | tee log", "|", "write `sh -c "),
        ("./server {port} &", "&", "leave it out: a server has to stay in the foreground"),
        ("~/server {port}", "~/server", "write the whole path"),
        ("./server --root ~/www {port}", "~/www", "write the whole path"),
        ("./server --port $PORT", "$PORT", "write `{port}`: "),
        ("./server {port} --home=${HOME}/x", "--home=${HOME}/x", "write `sh -c "),
        ("./server {port} $(nproc)", "$(nproc)", "write `sh -c "),
        ("exec ./server {port}", "exec", "write `sh -c "),
    ],
)
def test_each_is_named_with_what_to_write(text: str, word: str, advice: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        read_command(text)
    assert f"`{word}` is for a shell, and commands start without one" in caught.value.message
    assert caught.value.hint.startswith(advice)


@pytest.mark.parametrize(
    "text",
    [
        "env PORT={port} ./server",
        "sh -c 'cd app && exec ./server {port} > log'",
        'sh -c "exec ./server $HOME {port} | cat"',
        "./server {port} '>' '$PORT' \"~/x\" a~b x=y 5$ --re=^a$",
        "java -Dx={port} -jar a.jar",
        "./my=server {port}",
        "python3 -c 'import os; os.x(\"{port}\")'",
    ],
)
def test_what_is_quoted_or_means_itself_is_left_alone(text: str) -> None:
    assert for_a_shell(text) is None
    read_command(text)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["PORT={port}", "./server"], "PORT={port}"),
        (["./server", "{port}", ">", "log"], ">"),
        (["~/server", "{port}"], "~/server"),
        (["./server", "--port=$PORT"], "--port=$PORT"),
        (["make", "all", "&&", "make", "install"], "&&"),
    ],
)
def test_lists_of_words(words: list[str], word: str) -> None:
    found = words_for_a_shell(words)
    assert found is not None
    assert found[0].startswith(f"`{word}` is for a shell")


@pytest.mark.parametrize("words", [["sh", "-c", "a > b"], ["./server", "a $x b", "{port}"], ["bash", "x", "&&"]])
def test_lists_that_mean_themselves(words: list[str]) -> None:
    assert words_for_a_shell(words) is None


def test_the_place_of_such_a_word_in_a_server_yaml() -> None:
    text = """\
about: a family
runtime: native
build: {run: ['true'], inputs: [a], outputs: [b]}
servers:
  one: {about: one, start: {command: ['PORT={port}', './server']}}
"""
    with pytest.raises(UsageError, match=r"server\.yaml:5:\d+: servers\.one\.start\.command: `PORT=\{port\}` is for"):
        read_family(text, "fake/server.yaml", "fake")


@pytest.mark.parametrize("text", ["curl -X POST -d hi http://127.0.0.1/", "/usr/bin/curl 'http://127.0.0.1/?a&b'"])
def test_a_command_of_curl_is_no_server(text: str) -> None:
    with pytest.raises(WrongValueError, match="sends a request, and starts no server") as caught:
        read_command(text)
    assert f"`redline init {shlex.quote(text)}` writes its request" in caught.value.hint
