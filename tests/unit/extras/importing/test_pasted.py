"""Command lines as they are copied for a shell."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.suite.pasted import Pasted, read_pasted, read_script, unescaped


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b", [["a", "b"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a -H'A: b'\"c\"", [["a", "-HA: bc"]]),
        ("a ''", [["a", ""]]),
        ("a \\\n  b\\\r\n c", [["a", "b", "c"]]),
        ('a "x \\" \\$y \\n"', [["a", 'x " $y \\n']]),
        (r"a $'it\'s\n'", [["a", "it's\n"]]),
        ("a|b -c|d", [["a"], ["b", "-c"], ["d"]]),
        ("a >out.txt 2>&1 | b", [["a"], ["b"]]),
        ("a 2> /dev/null b &> x c", [["a", "b", "c"]]),
        ("a b # c 'd", [["a", "b"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a b ;", [["a", "b"]]),
        ("\n a b & # c\n", [["a", "b"]]),
        ("a |\n b", [["a"], ["b"]]),
        ("a 'b\\\nc' \"d\\\ne\"", [["a", "b\\\nc", "de"]]),
        ("a 5$ '$x'", [["a", "5$", "$x"]]),
        ("", [[]]),
    ],
)
def test_words_are_those_of_a_shell(text: str, commands: list[list[str]]) -> None:
    assert [list(command) for command in read_pasted(text, "--like").commands] == commands


def test_a_file_may_be_its_input() -> None:
    assert read_pasted("a < in.txt | b", "x") == Pasted((("a",), ("b",)), "in.txt")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a && b", "`&&` is for a shell"),
        ("a & b", "`&` is for a shell"),
        ("a\nb", "a second line is for a shell"),
        ("(a)", "`(` is for a shell"),
        ("a $B", "`$B` is for a shell to fill in"),
        ('a "${B}"', "`${B}` is for a shell to fill in"),
        ('a "$1"', "`$1` is for a shell to fill in"),
        ("a $(b", "`$(b` is for a shell to fill in"),
        ("a `b c`", "is for a shell to fill in"),
        ("a 'b", "no closing quotation"),
        ('a "b', "no closing quotation"),
        ("a $'b", "no closing quotation"),
        ("a \\", "is not the end of a command"),
        ("a `b", "is not the end of a command"),
    ],
)
def test_what_only_a_shell_can_do_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_pasted(text, "--like")
    assert says in refused.value.message
    assert refused.value.hint


@given(st.lists(st.text(min_size=1), min_size=1))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert read_pasted(shlex.join(words), "x").commands == (tuple(words),)
    assert [command.words for command in read_script(f"{shlex.join(words)}\n" * 2, "file")] == [tuple(words)] * 2


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert read_pasted(text, "x").commands
    except UsageError:
        return


@given(st.text("a'\"$\\\n|&;<>(){}`# \r"))
def test_any_script_is_read_or_refused(text: str) -> None:
    try:
        lines = [command.line for command in read_script(text, "file")]
    except UsageError:
        return
    assert lines == sorted(lines)
    assert all(0 < line <= text.count("\n") + 1 for line in lines)


def test_a_script_is_its_commands_with_their_lines() -> None:
    text = "# x\n\na b \\\n c; d\ne 'f\ng' | h\ni && j > k\nl $M \"$N\"\no |\n p\nq < r || s"
    assert [tuple(command) for command in read_script(text, "file")] == [
        (3, ("a", "b", "c"), ""),
        (4, ("d",), ""),
        (5, ("e", "f\ng"), ""),
        (7, ("i",), ""),
        (7, ("j",), ""),
        (8, ("l", "", "$N"), "a variable of the shell"),
        (9, ("o",), ""),
        (11, ("q", "r"), "`<` of the shell"),
        (11, ("s",), ""),
    ]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (r"a\n\t\\\'", "a\n\t\\'"),
        (r"\u0021\u00e9\ud83d\ude00", "!é😀"),
        (r"\xc3\xa9\x41\101", "éAA"),
        (r"\U0001F600", "😀"),
        (r"\q", r"\q"),
    ],
)
def test_escapes(text: str, means: str) -> None:
    assert unescaped(text) == means
