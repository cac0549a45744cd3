"""The scripts of pages call only what is there: a page does not draw, and says nothing, if one of its names is wrong.

No parser of JavaScript, but enough for our scripts: a name is declared anywhere in its file.
"""

import re
from pathlib import Path

import pytest

import redline.render.html

SCRIPTS = sorted((Path(redline.render.html.__file__).parent / "assets").glob("*.js"))
OF_THE_LANGUAGE = {"var", "if", "for", "while", "switch", "catch", "return", "typeof", "function", "super", "await"}
OF_THE_BROWSER = {
    *(
        "Array",
        "Boolean",
        "Error",
        "Map",
        "Number",
        "Object",
        "Set",
        "String",
        "CustomEvent",
        "DOMParser",
        "Event",
        "URLSearchParams",
    ),
    *("IntersectionObserver", "ResizeObserver", "addEventListener", "decodeURIComponent", "encodeURIComponent"),
    *("fetch", "getComputedStyle", "matchMedia", "requestAnimationFrame", "setTimeout", "clearTimeout", "uPlot"),
}
NAME = r"[A-Za-z_$][\w$]*"


def code_of(script: str) -> str:
    """The script without comments, and without texts but templates, which hold code."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', '""', script, flags=re.DOTALL)


def calls_in(code: str) -> set[str]:
    """The names that are called, but for methods."""
    return set(re.findall(rf"(?<![\w$.#])({NAME})\(", code)) - OF_THE_LANGUAGE


def declared_in(code: str) -> set[str]:
    """The names of functions, of variables and of parameters."""
    declared = set(re.findall(rf"\bfunction\s+({NAME})", code))
    declared |= set(re.findall(rf"^\s*({NAME})\([^()]*\) \{{$", code, re.MULTILINE))  # methods of an object
    flat = re.sub(r"\w+: \{([^{}]*)\}", r"\1", code)  # a part of a destructured part
    lists = re.findall(r"\b(?:const|let)\s+(\[[^\]]*\]|\{[^{}]*\}|[^=;{}\[\]]+?)\s*(?:=|;| of )", flat)
    lists += [f"{name}," for several in re.findall(r"\b(?:const|let) ([^;]*);", code) for name in _assigned(several)]
    for names in lists:
        declared |= set(re.findall(rf"({NAME})\s*(?:,|\}}|\]|=|$)", names))
    for names in re.findall(rf"\bfunction\s*(?:{NAME})?\s*\(([^)]*)\)|\(([^()]*)\)\s*=>|({NAME})\s*=>", code):
        declared |= set(re.findall(NAME, " ".join(names)))
    return declared


def _assigned(names: str) -> list[str]:
    """The names in `a = 1, b = f(2)`."""
    return re.findall(rf"(?:^|, )({NAME}) =", names)


def lent_by_plot(code: str) -> set[str]:
    """What plot.js lends the other scripts."""
    (lent,) = re.findall(r"return \{([^{}]*)\};\s*\}\)\(\);\s*$", code)
    return set(re.findall(rf"({NAME})\s*(?:,|:|$)", lent.strip()))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_calls_what_it_or_the_browser_declares(script: Path) -> None:
    code = code_of(script.read_text())
    assert calls_in(code) - declared_in(code) - OF_THE_BROWSER - {"plotting"} == set()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_borrows_what_plot_lends(script: Path) -> None:
    lent = lent_by_plot(code_of((SCRIPTS[0].parent / "plot.js").read_text()))
    code = code_of(script.read_text())
    borrowed = ",".join(re.findall(r"\{([^{}]*)\} = plotting;", code))
    wanted = {name.partition(":")[0].strip() for name in borrowed.split(",")} - {""}
    wanted |= set(re.findall(rf"\bplotting\.({NAME})", code))
    assert wanted <= lent


def test_a_name_that_is_not_there_is_seen() -> None:
    code = code_of(
        'const { count: counted } = plotting; const f = (a, b) => a(counted(b)); // g()\nf("h()"); count(1);'
    )
    assert calls_in(code) - declared_in(code) == {"count"}
