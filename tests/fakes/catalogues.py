"""A small catalogue in the right form, as text and as a folder, for tests of suites."""

from pathlib import Path

from redline.errors import Problem, UsageError
from redline.model import Suite
from redline.suite import Catalogue, Overrides, load_catalogue, load_suite

FAMILY = """\
about: two servers of one language
runtime: native
build:
  run: [make, all]
  inputs: [src/**]
  outputs: [out/server]
  needs: [{command: make, hint: install make}]
options:
  routes: {about: how many routes, values: [1, 128], default: 128}
servers:
  plain:
    about: no framework
    start: {command: ["{folder}/out/server", --port, "{port}", --routes, "{routes}"]}
  layered:
    about: a framework on top
    start: {command: ["{folder}/out/server", --port, "{port}", --routes, "{routes}", --log, "{log}"]}
    ready: {path: /path0, within: 30s}
    options:
      log: {values: [off, server-log], default: off}
"""

CEILING = """\
runtime: native
servers:
  "null":
    about: answers without work
    build: {run: [make], inputs: [src/**], outputs: [out/null]}
    start: {command: [out/null, "{port}"]}
"""

JVM = """\
runtime: jvm
servers:
  vanilla:
    about: starts slowly
    build: {run: [mvn, package], inputs: [pom.xml], outputs: [target/a.jar]}
    start: {command: [java, -jar, target/a.jar], env: {PORT: "{port}"}}
"""

PROXIES = """\
runtime: native
kind: proxy
build: {run: [make], inputs: [src/**], outputs: [out]}
servers:
  front:
    about: a proxy
    protocols: [h1, h1+tls, h2+tls]
    upstream: [h1, h2c]
    tls: {ca: out/ca.pem, server_name: localhost}
    options: {workers: {values: [1, 2], default: 2}}
    start:
      command:
        [out/front, "{port}", "{protocol}", "{workers}", "{upstream_host}:{upstream_port}", "{upstream_protocol}"]
"""

SCENARIOS = """\
scenarios:
  Get: {get: /path0, expect: {body: path0}}
  GetMulti: {get: /path127, expect: {body: path127}, requires: {routes: 128}}
  Post: {post: /bytes0, body: {size: 256}, expect: {body: bytes0 256}}
"""

SUITE = """\
servers: [fam.plain, fam.layered]
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""


def write_catalogue(folder: Path, **files: str) -> Path:
    """The small catalogue, with other texts for `fam`, `top`, `slow` or `scenarios`, and further families."""
    texts = {"fam": FAMILY, "top": CEILING, "slow": JVM, "scenarios": SCENARIOS, **files}
    for name, text in texts.items():
        file = folder / "scenarios.yaml" if name == "scenarios" else folder / name / "server.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def small_catalogue(folder: Path) -> Catalogue:
    """The small catalogue: fam.plain, fam.layered, top.null, slow.vanilla; Get, GetMulti, Post."""
    return load_catalogue(write_catalogue(folder / "catalogue"))


def suite_of(folder: Path, text: str = SUITE, overrides: Overrides | None = None) -> Suite:
    """The suite of a text against the small catalogue."""
    file = folder / "some.yaml"
    file.write_text(text, encoding="utf-8")
    return load_suite(file, small_catalogue(folder), overrides or Overrides())


def problems_of(folder: Path, text: str, overrides: Overrides | None = None) -> tuple[Problem, ...]:
    """The errors of a suite; fails when there are none."""
    try:
        suite_of(folder, text, overrides)
    except UsageError as error:
        return error.problems
    raise AssertionError("the suite was accepted")
