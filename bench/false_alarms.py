"""How often `redline ab --git` says that equal commits differ: `python -m bench.false_alarms [--rounds 10]`.

Small servers in five languages get commits that change nothing of what they do: an empty one, a README, a comment at
the end of the source, which leaves most builds the same bytes, and one at its top, which moves its lines. Each commit
is compared with its parent `--for 60s`; all of a round come in random order. Each answer is added to RESULTS at once.
The tables of results.md are written anew, with `--table` alone.
"""

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REDLINE = Path(sys.executable).with_name("redline")
RESULTS = Path(__file__).with_name("false_alarms.jsonl")
PAGE = Path(__file__).with_name("results.md")
COMMITS = ("empty", "README", "comment at the end", "comment at the top")
NARROW = 0.05
ALARMS = frozenset({"faster", "slower", "slightly-faster", "slightly-slower"})
WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")


@dataclass(frozen=True)
class Language:
    """A server's source, how it is built and started, what it needs, and how a comment begins."""

    file: str
    source: str
    build: str
    start: str
    needs: str
    comment: str = "// "


RUST = """
use std::io::{Read, Write};
fn main() {
    let port = std::env::args().nth(1).unwrap();
    for stream in std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap().incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut heard = [0u8; 4096];
            while stream.read(&mut heard).map_or(false, |size| size > 0) {
                let text: String = (0..200).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
                let answer = format!("HTTP/1.1 200 OK\\r\\ncontent-length: {}\\r\\n\\r\\n{text}", text.len());
                if stream.write_all(answer.as_bytes()).is_err() { break; }
            }
        });
    }
}
"""
GO = """
package main

import ("net/http"; "os"; "strings")

func main() {
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Write([]byte(strings.Repeat("abcdefghij", 20)))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"""
NODE = """
require("http").createServer((_, answer) => answer.end("abcdefghij".repeat(20))).listen(process.argv[2], "127.0.0.1");
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Serve {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.createContext("/", exchange -> {
            byte[] answer = "abcdefghij".repeat(20).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
"""
PYTHON = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        answer = b"abcdefghij" * 20
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n%s" % (len(answer), answer))
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
JAVA_START = "java -Dsun.net.httpserver.nodelay=true -XX:+UseSerialGC -Xmx128m Serve {port}"
LANGUAGES = {
    "Rust": Language("serve.rs", RUST, "rustc -O -o serve serve.rs", "./serve {port}", "rustc"),
    "Go": Language("serve.go", GO, "go build -o serve serve.go", "./serve {port}", "go"),
    "Node": Language("serve.js", NODE, "", "node serve.js {port}", "node"),
    "Java": Language("Serve.java", JAVA, "javac Serve.java", JAVA_START, "javac"),
    "Python": Language("serve.py", PYTHON, "", f"{sys.executable} serve.py {{port}}", sys.executable, "# "),
}


def repository(folder: Path, language: Language, commit: str) -> None:
    """Make a repository of a server whose last commit changes nothing of what it does."""

    def git(*words: str) -> None:
        subprocess.run(["git", *WHO, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    source, said = language.source.lstrip("\n"), f"{language.comment}This changes nothing.\n"
    changed = {
        "empty": {},
        "README": {"README.md": "A server.\n"},
        "comment at the end": {language.file: source + said},
        "comment at the top": {language.file: said + source},
    }[commit]
    build = f"build: {language.build}\n" if language.build else ""
    git("init", "-q")
    (folder / language.file).write_text(source)
    (folder / "redline.yaml").write_text(f"{build}start: {json.dumps(language.start)}\n")
    git("add", "-A")
    git("commit", "-qm", "Serve")
    for name, content in changed.items():
        (folder / name).write_text(content)
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", commit)


def compared(name: str, commit: str, budget: str) -> dict[str, Any]:
    """Compare a commit with its parent: the verdict and the ratio of the first metric, or why there is none."""
    found: dict[str, Any] = {"language": name, "commit": commit, "for": budget, "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        work, results = Path(folder) / "work", Path(folder) / "run" / "results.json"
        work.mkdir()
        repository(work, LANGUAGES[name], commit)
        command = [str(REDLINE), "ab", "--git", "HEAD~1..HEAD", "--for", budget, "-o", str(results.parent)]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if not results.is_file():
            return found | {"said": "failed", "why": done.stderr.strip()[-300:]}
        report = json.loads(results.read_bytes())
    if report.get("same") or report["run"].get("same"):
        return found | {"said": "same build"}
    first = next((one for one in report["comparisons"] if one["primary"]), None)
    if first is None:
        return found | {"said": "failed", "why": "there is no comparison"}
    verdict = first["verdict"] or "no verdict"
    ends = {end: first["ratio"][end] for end in ("value", "low", "high")} if first["ratio"] else {}
    return found | {"said": "differs" if verdict in ALARMS else "nothing", "verdict": verdict, **ends}


def table(found: Iterable[dict[str, Any]]) -> str:
    """The table of the page: for each language and commit what was said, and how often."""
    said: dict[tuple[str, str], Counter[str]] = {}
    for one in found:
        said.setdefault((one["language"], one["commit"]), Counter())[one["said"]] += 1
    lines = [
        "| server | commit | compared | same build | measured | said to differ | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, commit in ((name, commit) for name in LANGUAGES for commit in COMMITS):
        counts = said.get((name, commit), Counter())
        measured = counts["nothing"] + counts["differs"]
        numbers = (counts.total(), counts["same build"], measured, counts["differs"], counts["failed"])
        lines.append(f"| {name} | {commit} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def widths(found: Iterable[dict[str, Any]]) -> str:
    """The table of how wide the intervals are, as factors up and down: only a narrow one could have raised an alarm."""
    ends: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        if "low" in one:
            ends.setdefault(one["language"], []).append((one["low"], one["high"]))
    lines = [
        f"| server | measured | within ±{NARROW:.0%} | median half width | widest |",
        "|---|---|---|---|---|",
    ]
    for name in (name for name in LANGUAGES if name in ends):
        factors = [math.sqrt(high / low) for low, high in ends[name]]
        few = sum(low >= 1 - NARROW and high <= 1 + NARROW for low, high in ends[name])
        shown = [
            f"±{each - 1:.1%}" if each < 2 else f"a factor of {each:.1f}"
            for each in (statistics.median(factors), max(factors))
        ]
        lines.append(f"| {name} | {len(factors)} | {few} | {' | '.join(shown)} |")
    return "\n".join(lines)


def page(text: str, lines: Iterable[str]) -> str:
    """The page with the tables of these stored answers in place of its present ones."""
    found = [json.loads(line) for line in lines]
    for made in (widths(found), table(found)):
        begin = text.index(made[: made.index("\n")])
        text = text[:begin] + made + text[text.index("\n\n", begin) :]
    return text


def main() -> None:
    """Make the comparisons, and write the table of all that are stored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="budget", default="60s", help="the budget of a comparison")
    parser.add_argument("--rounds", type=int, default=10, help="comparisons of each commit of each language")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after this time")
    parser.add_argument("--table", action="store_true", help="write the tables of the stored answers alone")
    asked = parser.parse_args()
    if not asked.table:
        until = time.monotonic() + 60 * asked.minutes
        present = [name for name, language in LANGUAGES.items() if shutil.which(language.needs)]
        for _ in range(asked.rounds):
            each = [(name, commit) for name in present for commit in COMMITS]
            random.shuffle(each)
            for name, commit in each:
                if time.monotonic() > until:
                    break
                found = compared(name, commit, asked.budget)
                print(json.dumps(found), flush=True)
                with RESULTS.open("a") as results:
                    results.write(json.dumps(found) + "\n")
    PAGE.write_text(page(PAGE.read_text(), RESULTS.read_text().splitlines()))


if __name__ == "__main__":
    main()
