"""The table of libraries, and the library that a sample counts for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.model import Library, Stack, Stacks
from redline.profiles.libraries import KERNEL, OTHER, UNKNOWN, Libraries
from redline.suite import load_catalogue, load_libraries
from tests.fakes.catalogues import write_catalogue
from tests.fakes.profiles import stack_of

NOWHERE = Path("/nonexistent")
SHIPPED = Libraries(load_libraries(NOWHERE), "jvm")
NATIVE = Libraries(load_libraries(NOWHERE))
"""As profiles of programs on no JVM are counted."""
OWN = """\
libraries:
- {name: acme's router, packages: [com.acme.routing]}
- {name: acme, packages: [com.acme]}
- {name: my fibers, packages: [cats.effect]}
"""


def owner(text: str, table: Libraries = SHIPPED) -> str:
    """The owner of a stack given as text, with frames as a profiler writes them."""
    return table.of_stack(stack_of(text))


@pytest.mark.parametrize(
    ("stack", "library"),
    [
        # the innermost frame of a library decides
        ("java/lang/Thread.run;cats/effect/IOFiber.runLoop_[j]", "cats-effect"),
        ("cats/effect/IOFiber.runLoop;sttp/tapir/server/interpreter/ServerInterpreter.apply", "tapir's interpreter"),
        ("sttp/tapir/server/interpreter/ServerInterpreter.apply;sttp/tapir/EndpointInput.x", "tapir"),
        # the JDK, Scala's library, the JVM and libc count for their callers
        ("sttp/tapir/EndpointInput.x;scala/collection/immutable/List.map;java/util/HashMap.get_[i]", "tapir"),
        ("io/netty/util/Recycler.get;itable stub", "netty"),
        ("io/netty/buffer/X.copy;__memmove_avx_unaligned_erms", "netty"),
        ("io/netty/buffer/X.alloc;OptoRuntime::new_array_C", "netty"),
        ("java/lang/Thread.run;java/util/HashMap.get", "JDK"),
        (
            "fs2/Stream.x;jdk/internal/misc/Unsafe.allocateInstance;Unsafe_AllocateInstance;oopDesc::metadata_field",
            "fs2",
        ),
        ("fs2/Stream.x;InterpreterRuntime::resolve_invoke;frame::f;ArgumentSizeComputer::ArgumentSizeComputer", "fs2"),
        ("fs2/Stream.x;I2C/C2I adapters", "fs2"),
        ("fs2/Stream.x;java/util/HashMap.get;Key.hashCode", OTHER),
        ("JavaCalls::call_helper;call_stub;Interpreter;Main.main", OTHER),
        ("__libc_start_call_main;main;hot", OTHER),
        ("start_thread;thread_native_entry;SymbolTable::lookup", "JVM runtime"),
        # code that nobody named counts for itself, and so does what it calls
        ("io/netty/channel/X.read;com/acme/Handler.handle", OTHER),
        ("io/netty/channel/X.read;com/acme/Handler.handle;java/util/HashMap.get", OTHER),
        ("io/netty/channel/X.read;[unknown]", "netty"),
        ("io/netty/buffer/X.alloc;[byte[]]", "netty"),
        ("[unknown];0x7f00", UNKNOWN),
        ("", UNKNOWN),
        # the kernel is never its caller's
        (
            "io/netty/channel/epoll/Native.writev;do_syscall_64_[k];tcp_sendmsg_[k];_copy_from_iter_[k]",
            "kernel network",
        ),
        ("io/netty/channel/epoll/Native.epollWait;do_syscall_64_[k];schedule_[k]", "kernel"),
        ("io/netty/X.y;entry_SYSCALL_64_after_hwframe;tcp_sendmsg;memcpy", "kernel network"),
        # a thread may be a library's own
        ("[GC Thread#3 tid=1];start_thread;[unknown]", "collector"),
        ("[G1 Conc#0 tid=1];start_thread;java/lang/X.y", "collector"),
        ("[C2 CompilerThread0 tid=1];start_thread;Compile::Compile", "JIT compiler"),
        ("[VM Thread tid=1];futex_wait_[k]", "collector"),
        ("[io-compute-1 tid=1];io/netty/X.y;G1BarrierSetRuntime::write_ref_field_pre_entry", "collector"),
        # other languages
        ("tokio::runtime::X::poll;<hyper::proto::h1::conn::Conn<I> as core::future::future::Future>::poll", "hyper"),
        ("hyper::proto::X::poll;core::ptr::drop_in_place<T>;__libc_free", "hyper"),
        ("run_asgi (uvicorn/protocols/http/h11_impl.py:403)", "uvicorn"),
        ("Thread.run (threading.py);serve (uvicorn/server.py)", "uvicorn"),
        ("serve (uvicorn/server.py);Thread.run (threading.py)", "uvicorn"),
        ("_run (asyncio/events.py:84);get (/srv/app/site-packages/starlette/routing.py:10)", "starlette"),
        ("JS:*route file:///srv/app/node_modules/fastify/lib/route.js:120:3", "fastify"),
        ("JS:*route file:///srv/app/node_modules/fastify/lib/route.js:1;Builtins_Call", "fastify"),
        ("ngx_event_process_posted;[libssl.so.3]", "TLS"),
        ("reitit/ring$ring_handler$fn__12345.invoke;clojure/lang/RT.get", "reitit"),
    ],
)
def test_a_sample_counts_for(stack: str, library: str) -> None:
    assert owner(stack) == library


@pytest.mark.parametrize(
    ("stack", "library"),
    [
        ("_start;main;read_request", OTHER),
        ("main;send_response", OTHER),
        ("main;selectRoute", OTHER),
        ("start_thread;ThreadPool::run", OTHER),
        ("ObjectPool::get", OTHER),
        ("_start;__libc_start_main;main", OTHER),
        ("_start;main;write_all;__libc_write;do_syscall_64_[k];vfs_write_[k]", "kernel"),
        ("_start;main;free_list_get;malloc_arena", OTHER),
        ("main;ngx_process_events;poll_sockets", OTHER),
        ("main;ngx_process_events;epoll_wait", "nginx"),
        ("main;hyper::proto::X::poll;write", "hyper"),
        ("__libc_start_call_main;main;Py_BytesMain;_PyEval_EvalFrameDefault", "Python's runtime"),
        ("main;node::Start(int, char**);v8::Function::Call;Builtins_Call", "Node's runtime"),
        ("G1Renderer::draw", OTHER),
        ("[VM Thread tid=1];serve", OTHER),
        ("v8::internal::Heap::CollectGarbage", "collector"),
        ("v8::internal::compiler::Pipeline::Run", "JIT compiler"),
    ],
)
def test_names_that_a_program_gave_its_own_functions_are_not_a_runtimes(stack: str, library: str) -> None:
    assert owner(stack, NATIVE) == library


PARSER = "node::(anonymous namespace)::Parser::Execute;v8::Function::Call;Builtins_JSEntryTrampoline"


@pytest.mark.parametrize(
    ("stack", "library"),
    [
        # Go: its own library has several names, and modules are named by their import path
        ("net/http.(*conn).serve;runtime.mallocgc", "net/http"),
        (
            "net/http.(*conn).serve;main.list;encoding/json.(*encodeState).marshal;bytes.(*Buffer).Write",
            "encoding/json",
        ),
        ("net/http.(*conn).serve;main.list;encoding/json.structEncoder.encode;runtime.memmove", "encoding/json"),
        ("net/http.(*conn).serve;main.list;bytes.(*Buffer).WriteByte", OTHER),
        ("net/http.(*conn).serve;main.list;compress/flate.(*compressor).deflate", "Go's compression"),
        ("net/http.(*conn).serve;main.list;html/template.(*Template).Execute;fmt.Fprint", "Go's templates"),
        ("runtime.gcBgMarkWorker;runtime.scanobject", "collector"),
        ("main.handler;strings.ToUpper", OTHER),
        ("crypto/tls.(*Conn).Write;crypto/aes.encryptBlock", "TLS"),
        ("github.com/valyala/fasthttp.(*Server).serveConn", "fasthttp"),
        ("main.main;github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin"),
        ("main.main;go.uber.org/zap/zapcore.(*CheckedEntry).Write", "go.uber.org/zap"),
        ("main.main;golang.org/x/sync/errgroup.(*Group).Go", "golang.org/x/sync"),
        ("main.main;(*github.com/jackc/pgx/v5.Conn).Query", "github.com/jackc/pgx"),
        # Rust: names of crates are not those of packages elsewhere
        ("hyper::proto::X::poll;bytes::bytes_mut::BytesMut::reserve", "hyper"),
        ("myserver::traffic::count;traffic::Counter::add", OTHER),
        ("axum::serve;myserver::list;serde_json::ser::to_vec", "serde"),
        # Python: files of its own library
        ("serve_forever (socketserver.py);do_GET (http/server.py)", "Python's http.server"),
        ("view (app.py);dumps (json/__init__.py);iterencode (json/encoder.py)", "Python's json"),
        ("call (/venv/lib/python3.12/site-packages/litestar/app.py:9)", "litestar"),
        ("call (/usr/lib/python3/dist-packages/bottle.py:9)", "bottle"),
        # JavaScript: code of the program, of an installed package, and of Node
        (f"{PARSER};JS:parserOnIncoming node:_http_server:1026:26;JS:emit node:events:471:44", "Node's HTTP"),
        (f"{PARSER};JS:parserOnIncoming node:_http_server:1026:26;JS:render /srv/app.js:3:16", OTHER),
        (f"{PARSER};JS:render /srv/app.js:3:16;Builtins_CEntry;v8::internal::JsonStringify", OTHER),
        ("uv_run;JS:listOnTimeout node:internal/timers:5:3", "libuv"),
        (f"{PARSER};JS:get /srv/node_modules/@acme/orm/index.js:1:2;Builtins_X", "@acme/orm"),
        (f"{PARSER};JS:get /srv/node_modules/.pnpm/koa@2/node_modules/koa/lib/a.js:1:2", "koa"),
        # what has no name counts for nobody who called it through a compiler's code
        (f"{PARSER};[perf-4711.map];v8::internal::JsonStringify", UNKNOWN),
        (f"{PARSER};[perf-4711.map];uv_write;do_syscall_64_[k];tcp_sendmsg_[k]", "kernel network"),
        (f"{PARSER};[perf-4711.map];uv_write", "libuv"),
        ("dotnet_main;[anon];[perf-9.map]", UNKNOWN),
        ("__libc_start_call_main;[gosrv];[gosrv]", UNKNOWN),
        ("start_thread;[libwork.so.2];memcpy", "libc"),
        ("start_thread;[libwork.so.2]", UNKNOWN),
        ("ngx_process_events;[nginx]", "nginx"),
        ("Py_BytesMain;_PyEval_EvalFrameDefault;[python3.11]", "Python's runtime"),
    ],
)
def test_code_counts_by_its_language_and_name(stack: str, library: str) -> None:
    assert owner(stack, NATIVE) == library


@pytest.mark.parametrize(
    ("stack", "reason"),
    [
        ("main;[perf-4711.map];v8::internal::JsonStringify", "a runtime compiled this code and wrote down no names"),
        ("__libc_start_call_main;[gosrv];[gosrv]", "`gosrv` has no symbols"),
        ("start_thread;[libwork.so.2]", "`libwork.so.2` has no symbols"),
        ("[unknown];0x7f00", "its addresses are in no file that is known"),
        ("main;net/http.(*conn).serve", ""),
    ],
)
def test_why_code_is_unknown_is_said(stack: str, reason: str) -> None:
    said = NATIVE.why_unknown(Stacks({stack_of(stack): 1}))
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def test_why_code_is_unknown_begins_with_the_most_frequent_reason() -> None:
    stacks = Stacks({stack_of("[a]"): 1, stack_of("[unknown]"): 5, stack_of("[b]"): 3, stack_of("[c]"): 2})
    said = NATIVE.why_unknown(stacks)
    assert said == "its addresses are in no file that is known; `b` has no symbols; `c` has no symbols"


def test_names_of_the_engines_crates_are_the_engines_in_its_own_profile() -> None:
    engine = Libraries(load_libraries(NOWHERE), "engine")
    assert owner("loadgen::worker::Worker::turn;wire::read::parse", engine) == "redline's engine"
    assert owner("myserver::turn;wire::read::parse", NATIVE) == OTHER


@pytest.mark.parametrize(
    "function",
    [
        *("read", "pread64", "preadv2", "preadv64v2", "readv", "__read_nocancel", "__GI___libc_write", "__libc_send"),
        *("writev", "send", "sendto", "sendmsg", "sendmmsg", "recvfrom", "__recv_chk", "accept4", "poll", "__poll"),
        *("select", "epoll_wait", "epoll_pwait", "epoll_ctl", "eventfd_write", "close", "__open64"),
        *("__memmove_avx_unaligned_erms", "__memset_avx512_unaligned_erms", "__memcmp_evex_movbe", "memcpy"),
        *("__strlen_avx2", "__memcpy_chk", "__vsnprintf_internal", "snprintf", "strtoul", "__strncasecmp_l_avx2"),
        *("malloc", "free", "cfree@GLIBC_2.2.5", "free@plt", "_int_malloc", "_int_free_merge_chunk", "__libc_calloc"),
        *("malloc_consolidate", "unlink_chunk", "tcache_get", "sysmalloc", "realloc", "calloc", "posix_memalign"),
        *("start_thread", "clone", "clone3", "__clone3", "pthread_mutex_lock", "___pthread_mutex_lock", "syscall"),
        *("pthread_cond_wait@@GLIBC_2.3.2", "__pthread_cond_timedwait", "__lll_lock_wait", "sem_wait"),
        *("__futex_abstimed_wait_common", "sched_yield", "__sched_yield", "nanosleep", "clock_nanosleep"),
        *("clock_gettime", "__clock_gettime_2", "__vdso_clock_gettime", "__kernel_clock_gettime", "[vdso]", "_start"),
        *("__libc_start_main", "__libc_start_call_main", "_dl_runtime_resolve_xsavec", "__syscall_cp_c", "_IO_fwrite"),
    ],
)
def test_functions_of_libc_are_libcs_whatever_the_program_runs_on(function: str) -> None:
    for table in (SHIPPED, NATIVE):
        found = table.of_frame(function)
        assert found is not None
        assert found.name == "libc"


@pytest.mark.parametrize(
    "function",
    [
        *("read_request", "readline", "reader", "write_all", "writer_loop", "send_response", "sender", "recv_loop"),
        *("selectRoute", "select_backend", "poll_events", "pollster", "main", "main_loop", "free_list", "freeze"),
        *("malloc_pool", "memcpy_fast", "memset_pattern", "strlen_utf8", "acceptConnection", "epoll_loop", "clone_row"),
        *("syscall_count", "futex_mutex", "pthread_pool_run", "pthreadpool_run", "libcurl_get", "libc", "GIF_decode"),
        *("start_thread_pool", "pmalloc_init", "arena_get_chunk", "closest", "timer", "killer", "exit_code", "bind_to"),
    ],
)
def test_functions_that_begin_like_those_of_libc_are_not_libcs(function: str) -> None:
    assert NATIVE.of_frame(function) is None


def test_without_a_table_all_is_other_code_or_the_kernel() -> None:
    none = Libraries(())
    assert owner("java/lang/Thread.run;io/netty/X.y", none) == OTHER
    assert owner("io/netty/X.y;tcp_sendmsg_[k]", none) == KERNEL


def test_libraries_on_a_stack_are_all_that_it_passes() -> None:
    stack = Stack(("java.lang.Thread.run", "io.netty.X.y", "com.acme.Handler.z", "tcp_sendmsg_[k]"))
    assert SHIPPED.names_on(stack) == {"JDK", "netty", "kernel network"}
    assert SHIPPED.names_on(Stack(("com.acme.Handler.z",))) == {OTHER}


@given(st.dictionaries(st.lists(st.text(max_size=12), max_size=5).map(tuple), st.integers(1, 99), max_size=8))
def test_every_sample_counts_for_one_library(weights: dict[tuple[str, ...], int]) -> None:
    stacks = Stacks({Stack(frames): weight for frames, weight in weights.items()})
    assert sum(weight for stack, weight in stacks.weights.items() if SHIPPED.of_stack(stack)) == stacks.total


def test_the_table_of_a_users_catalogue_comes_first(tmp_path: Path) -> None:
    (tmp_path / "libraries.yaml").write_text(OWN, encoding="utf-8")
    own = Libraries(load_libraries(tmp_path), "jvm")
    assert owner("com/acme/routing/Tree.find", own) == "acme's router"
    assert owner("com/acme/Handler.handle", own) == "acme"
    assert owner("cats/effect/IOFiber.runLoop", own) == "my fibers"
    assert owner("io/netty/X.y", own) == "netty"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("libraries: []", "libraries"),
        ("libraries: [{name: x}]", "nothing belongs to x"),
        ("libraries: [{name: x, symbols: ['(']}]", "not a valid regex"),
        ("libraries: [{name: x, package: [a]}]", "packages"),
        ("libraries: [{name: x, runtime: go, packages: [a]}]", "jvm"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "libraries.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said) as raised:
        load_libraries(tmp_path)
    (catalogue := write_catalogue(tmp_path)).joinpath("libraries.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        load_catalogue(catalogue)
    assert f"{tmp_path}/libraries.yaml:1" in str(raised.value)


def test_the_shipped_table_names_each_library_and_package_once() -> None:
    table = load_libraries(NOWHERE)
    names = [(library.name, library.runtime) for library in table]
    packages = [(package, library.language) for library in table for package in library.packages]
    assert len(names) == len(set(names))
    assert len(packages) == len(set(packages))
    assert Library(name="x", packages=("a",)).counts_for == "itself"
