"""Settings of real JVMs: collectors start on all JDKs, refused settings are skipped, a screen detects what matters."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching.jdks import Jdks
from redline.model import Option, OptionValue, Report, Variant
from redline.model.jvm import FlagSet
from redline.suite import load_catalogue
from tests.e2e.conftest import Redline
from tests.e2e.lab import SCENARIOS
from tests.e2e.workshop import CHECKOUT

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SOURCE = """\
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Server {
    static volatile double kept;

    public static void main(String[] args) throws Exception {
        int work = Integer.getInteger("work", 0);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", exchange -> {
            double sum = 0;
            for (int i = 1; i <= work; i++) sum += Math.sqrt(i);
            kept = sum;
            byte[] body = "ok".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
"""
FAMILY = """\
runtime: jvm
about: the JDK's own HTTP server
build: {run: [javac, --release, "11", -d, out, Server.java], inputs: [Server.java], outputs: [out/Server.class]}
ready: {path: /, status: 200, within: 30s}
options:
  jdk: {values: [11, 17, 21, 25], default: 25}
  gc: {values: [Serial, Parallel], default: Serial}
  heap: {values: [64m, 128m], default: 64m}
servers:
  plain:
    about: answers ok
    start: {command: ["{java}", "-Xms{heap}", "-Xmx{heap}", "-XX:+Use{gc}GC", -cp, out, Server, "{port}"]}
"""
SUITE = """\
servers: [own.plain]
jvm: {{jdk: path, gc: [Serial, Parallel], heap: [64m, 128m], flags: {flags}}}
scenarios: [Ok]
loads: {{saturate: {{closed: {{users: 2}}, for: 500ms}}}}
warmup: 500ms
trials: 2
"""


@pytest.mark.parametrize("release", [11, 17, 21, 25])
def test_each_collector_starts_on_each_jdk_with_each_heap(release: int) -> None:
    entry = load_catalogue(CHECKOUT / "catalogue").servers["http4s.vanilla"]
    jdks = Jdks(CHECKOUT / ".cache")
    axes = (entry.options["gc"].values, entry.options["heap"].values[:2])
    flags = (None, FlagSet(name="compact", flags=("-XX:+UseCompactObjectHeaders",)))
    variants = [
        Variant(entry=entry, options={**_defaults(entry.options), "jdk": release, "gc": gc, "heap": heap}, flags=one)
        for gc, heap, one in product(*axes, flags)
    ]
    try:
        jdks.provide(variants[0], lambda _line: None)
    except BuildError as error:
        pytest.skip(f"no JDK {release} here: {error}")
    for variant in variants:
        if not variant.misfit:
            jdks.check_settings(variant)
        elif variant.flags is not None:
            with pytest.raises(BuildError, match="Unrecognized VM option 'UseCompactObjectHeaders'"):
                jdks.check_settings(variant)


def _defaults(options: dict[str, Option]) -> dict[str, OptionValue]:
    return {name: option.default for name, option in options.items()}


@pytest.fixture
def project(redline: Redline) -> Path:
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("no JDK on the PATH")
    family = redline.folder / "catalogue" / "own"
    family.mkdir(parents=True)
    (family / "Server.java").write_text(SOURCE)
    (family / "server.yaml").write_text(FAMILY)
    (redline.folder / "catalogue" / "scenarios.yaml").write_text(SCENARIOS)
    return redline.folder


def test_a_screen_finds_the_flag_that_makes_a_server_slow(redline: Redline, project: Path) -> None:
    suite = project / "suite.yaml"
    suite.write_text(SUITE.format(flags='{none: "", slow: "-Dwork=20000000"}'))
    done = redline("run", suite, "--screen", "-o", "out", "--json")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert len(report.cells) == 4
    (one,) = (each for each in report.main_effects if each.metric == "throughput")
    assert (one.variants, one.possible, one.resolution) == (4, 8, "III")
    found = {effect.axis: effect for effect in one.effects}
    assert found["flags"].verdict == "matters", done.err
    (level,) = found["flags"].levels
    assert level.value == "slow"
    assert level.ratio.value < 0.8
    assert "-w" not in report.next_command or "flags=" not in report.next_command


def test_what_a_jvm_refuses_is_skipped_with_its_words_and_the_rest_is_measured(redline: Redline, project: Path) -> None:
    suite = project / "suite.yaml"
    suite.write_text(SUITE.format(flags="{none: '', wrong: '-XX:+NoSuchFlag'}"))
    done = redline("run", suite, "-w", "gc=Serial", "-w", "heap=64m", "-o", "out", "--json")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert [cell.valid for cell in report.cells] == [True]
    (skipped,) = report.skipped
    assert "flags=wrong" in skipped.slug
    assert skipped.reason.startswith("JDK path does not start with these settings: Unrecognized VM option 'NoSuchFlag'")
