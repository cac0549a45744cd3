"""The functions that a range of commits touches, in the languages that people write servers in."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from redline.launching.revisions import Repository
from redline.launching.touched import definition, touched_functions, touched_in
from redline.model import Variant
from redline.model.catalogue import WORK_TREE, AttachedServer
from tests.fakes.recordings import simulated_run

PYTHON = """\
LIMIT = 1

class Handler:
    def often(self):
        def inner():
            return 1
        try:
            return inner()
        finally:
            pass

    async def seldom(
        self,
        n,
    ):
        return sum(
            LIMIT
            for _ in range(n)
        )
"""
C = """\
#include <stdio.h>
static long total;

__attribute__((noinline)) static void often(long n) {
#ifdef FAST
    total += n;
#endif
again:
    if (n > 3)
        goto again;
}

static struct point *
seldom(long n,
       long m)
{
    return lookup(
        n);
}
"""
RUST = """\
impl<'a> Service for Api<'a> {
    pub(crate) async fn call<B>(
        &self,
    ) -> u8 {
        self.inner.map(|x| {
            x + 1
        })
    }
}
"""
GO = """\
func (c *conn) serve(ctx context.Context) {
\tgo func() {
\t\tc.close()
\t}()
}
"""
JAVA = """\
public final class Api {
    @Override
    public Map<String, List<Byte>> answer(Request one) throws IOException {
        return one.headers(
            2);
    }
}
"""
CPP = """\
namespace api {
void Server<int>::answer(const Request& one) const {
    std::sort(one.begin(),
        one.end());
}
}
"""
JAVASCRIPT = """\
const often = async (req, res) => {
  res.end();
};
exports.seldom = function (n) {
  return n;
};
class Api {
  async answer(req) {
    if (req) {
      return 1;
    }
  }
}
app.get('/', (req, res) => {
  res.end();
});
"""


def names(path: str, text: str, changed: str, before: str = "x") -> list[str]:
    """The functions that are touched if the line with this text was another."""
    (at,) = [number for number, line in enumerate(text.split("\n")) if changed in line]
    old = [f" {line}" for line in text.split("\n")]
    old[at : at + 1] = [f"-{old[at][1:].replace(changed, before)}", f"+{old[at][1:]}"]
    head = [f"diff --git a/{path} b/{path}", "index 1..2 100644", f"--- a/{path}", f"+++ b/{path}", "@@ -1 +1 @@"]
    return [f"{one.within}.{one.name}" for one in touched_functions("\n".join((*head, *old)))]


@pytest.mark.parametrize(
    ("path", "text", "changed", "touched"),
    [
        ("a.py", PYTHON, "LIMIT = 1", []),
        ("a.py", PYTHON, "return 1", ["Handler.inner"]),
        ("a.py", PYTHON, "return inner()", ["Handler.often"]),
        ("a.py", PYTHON, "range(n)", ["Handler.seldom"]),
        ("a.py", PYTHON, "class Handler", []),
        ("a.c", C, "static long total", []),
        ("a.c", C, "total += n", [".often"]),
        ("a.c", C, "goto again", [".often"]),
        ("a.c", C, "        n)", [".seldom"]),
        ("a.rs", RUST, "x + 1", ["Api.call"]),
        ("a.go", GO, "c.close", ["conn.serve"]),
        ("a.java", JAVA, "2)", ["Api.answer"]),
        ("a.cpp", CPP, "one.end", ["Server.answer"]),
        ("a.js", JAVASCRIPT, "return n", [".seldom"]),
        ("a.js", JAVASCRIPT, "return 1", ["Api.answer"]),
        ("a.js", JAVASCRIPT, "app.get", []),
        ("a.md", PYTHON, "return 1", []),
    ],
)
def test_a_changed_line_touches_the_function_around_it(path: str, text: str, changed: str, touched: list[str]) -> None:
    assert names(path, text, changed) == touched


@pytest.mark.parametrize(
    ("kind", "line", "name"),
    [
        ("ts", "const serve: Handler = async (req) => {", "serve"),
        ("ts", "const serve: (req: Request) => Response = (req) => {", "serve"),
        ("ts", "export const serve = (req: Request): Response => {", "serve"),
        ("ts", "export const serve = async (", "serve"),
        ("ts", "  private readonly serve = async (req: Req, then: () => void): Promise<void> => {", "serve"),
        ("ts", "  override serve<T>(req: T): Promise<T> {", "serve"),
        ("ts", "  serve: (req) => {", "serve"),
        ("js", "const serve = req => {", "serve"),
        ("js", "module.exports = function serve(req) {", "serve"),
        ("js", "const names = items.map((item) => {", None),
        ("js", "app.get('/x', async (req, res) => {", None),
        ("js", "if (a === b) {", None),
        ("lua", "local serve = function(x)", "serve"),
        ("lua", "local serve = function (x) return x end", "serve"),
        ("lua", "function M:serve(x)", "serve"),
        ("scala", "  lazy val serve: Int => Int = x => {", "serve"),
        ("scala", "    case one: Int => {", None),
        ("kt", "fun <T : Comparable<T>> List<T>.serve(x: Int) {", "serve"),
        ("kt", "fun String?.serve() = 1", "serve"),
        ("rs", "fn serve<B: Body>(request: B) {", "serve"),
        ("java", "    Api(int x) {", "Api"),
        ("java", "    Api(int x) throws IOException {", "Api"),
        ("java", "        Api one = new Api(1) {", None),
        ("cpp", "    Server(int x) : x_(x) {}", "Server"),
        ("cpp", "    ParallelFor(n, [&](int at) {", None),
        ("cpp", "    LIST_FOREACH(one, all) {", None),
        ("cs", "    public async Task<int> Serve(int x) => x + 1;", "Serve"),
        ("cs", "    items.ForEach((x) => Print(x));", None),
        ("cs", "    return Serve((x) => x);", None),
    ],
)
def test_the_function_that_a_line_defines(kind: str, line: str, name: str | None) -> None:
    assert definition(line, kind) == (None if name is None else (name, ""))


def test_a_receiver_is_a_class_without_its_types() -> None:
    assert definition("func (c *conn[K, V]) serve(ctx", "go") == ("serve", "conn")


def test_a_renamed_function_counts_with_both_names() -> None:
    assert names("a.go", GO, "serve", "answer") == ["conn.answer", "conn.serve"]


def test_generated_files_are_left_out() -> None:
    assert names("a.c", C + "x" * 1001, "total += n") == []


@pytest.mark.parametrize(
    "line", ["return often(1)", "} else if (often(1)) {", "int x = often(", "static int often(int);"]
)
def test_calls_and_declarations_are_no_definitions(line: str) -> None:
    assert definition(line, "c") is None


def test_a_line_of_many_stars_is_read_at_once() -> None:
    assert definition("a" + " * & * &" * 2000, "c") is None


@pytest.mark.parametrize("text", ["a:" * 500, "a = (" * 200, "a: (a) " * 140, "fun a<" * 160, "=>(" * 300])
def test_a_long_line_of_a_script_is_read_at_once(text: str) -> None:
    began = time.perf_counter()
    definition(text, "ts")
    definition(text, "kt")
    assert time.perf_counter() - began < 1


def test_the_work_tree_is_compared_too(tmp_path: Path) -> None:
    def git(*args: str) -> None:
        who = {f"GIT_{role}_{what}": "somebody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(["git", *args], cwd=tmp_path, env={**os.environ, **who}, check=True, capture_output=True)

    git("init", "--quiet")
    (tmp_path / "serve.c").write_text(C)
    (tmp_path / "gone.py").write_text("def gone():\n    return 1\n")
    git("add", "-A")
    git("commit", "--quiet", "-m", "first")
    (tmp_path / "serve.c").write_text(C.replace("total += n", "total += 2 * n"))
    (tmp_path / "gone.py").unlink()
    repository = Repository.around(tmp_path)
    diff = repository.whole_diff(repository.revision("HEAD"), repository.revision(WORK_TREE))
    assert [(one.name, one.file) for one in touched_functions(diff)] == [("gone", "gone.py"), ("often", "serve.c")]


@pytest.mark.parametrize("attached", [(0,), (1,), (0, 1)])
def test_servers_that_were_running_already_are_no_range_of_commits(attached: tuple[int, ...]) -> None:
    plan = simulated_run().manifest.plan
    variants = list(plan.suite.variants[:2])
    for at in attached:
        variants[at] = Variant(entry=AttachedServer(host="127.0.0.1", port=8080 + at))
    suite = plan.suite.model_copy(update={"variants": tuple(variants)})
    assert touched_in(plan.model_copy(update={"suite": suite})) is None
