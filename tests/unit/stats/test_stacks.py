"""Stacks made comparable, and the laws of their sums and trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import FlameGraph, Slice, Stack, Stacks, Thread
from redline.stats.stacks import (
    flame_graph,
    kernel_from,
    normal,
    normal_frame,
    self_weights,
    thread_group,
    thread_weights,
    total_weights,
)

SLICES = (Slice(0, 5), Slice(5, 10))
profiles = st.dictionaries(
    st.builds(
        Stack,
        st.lists(st.sampled_from("abcdA"), min_size=1, max_size=6).map(tuple),
        st.builds(Thread, st.sampled_from(["io-1", "io-2", "gc"]), st.integers(1, 3)),
        st.sampled_from(SLICES),
    ),
    st.integers(1, 1000),
    min_size=1,
    max_size=30,
).map(lambda weights: Stacks(weights, SLICES))


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("java/lang/Thread.run_[j]", "java.lang.Thread.run"),
        ("a/B$$Lambda$14/0x0000000800c03000.apply_[i]", "a.B$$Lambda.apply"),
        ("a/B$$Lambda$14.0x00007f.apply", "a.B$$Lambda.apply"),
        ("a/B$$Lambda.0x00007f2c1c0a1000.apply_[0]", "a.B$$Lambda.apply"),
        ("a/B$$Lambda$7/1324119927.apply", "a.B$$Lambda.apply"),
        ("java/lang/invoke/LambdaForm$MH.0x00007f1c00.invoke_[1]", "java.lang.invoke.LambdaForm$MH.invoke"),
        (
            "jdk/internal/reflect/GeneratedMethodAccessor12.invoke",
            "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
        ),
        ("reitit/ring$ring_handler$fn__12345.invoke_[j]", "reitit.ring$ring_handler$fn__.invoke"),
        ("tcp_sendmsg_[k]", "tcp_sendmsg_[k]"),
        ("net/http.(*conn).serve", "net/http.(*conn).serve"),
        ("hyper::proto::h1::Conn<I>::poll::h0123456789abcdef", "hyper::proto::h1::Conn<I>::poll"),
        ("do_work.isra.0.constprop.1", "do_work"),
        ("write+0x1f", "write"),
        ("poll_read (inlined)", "poll_read"),
        ("JS:~often /srv/burning.js:8:15", "JS:often /srv/burning.js:8:15"),
        ("JS:^often /srv/burning.js:8:15", "JS:often /srv/burning.js:8:15"),
        ("JS:*'often /srv/burning.js:8:15", "JS:often /srv/burning.js:8:15"),
        ("LazyCompile:*onread node:internal/stream:1", "LazyCompile:onread node:internal/stream:1"),
        ("JS:* /srv/anonymous.js:1:1", "JS: /srv/anonymous.js:1:1"),
        ("", "[unknown]"),
    ],
)
def test_what_differs_from_start_to_start_is_left_out_of_names(frame: str, expected: str) -> None:
    assert normal_frame(frame) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("io-compute-3", "io-compute"),
        ("GC Thread#0", "GC Thread"),
        ("C2 CompilerThread0", "C2 CompilerThread"),
        ("http-nio-8080-exec-3", "http-nio-exec"),
        ("vert.x-eventloop-thread-1", "vert.x-eventloop-thread"),
        ("log4j2-TF-1", "log4j2-TF"),
        ("42", "42"),
        ("", "unnamed"),
    ],
)
def test_threads_of_a_pool_have_one_name(name: str, expected: str) -> None:
    assert thread_group(Thread(name, 7)) == expected


def test_the_interrupt_that_takes_the_sample_is_left_out() -> None:
    timer = ("asm_sysvec_apic_timer_interrupt_[k]", "sysvec_apic_timer_interrupt_[k]")
    stacks = Stacks(
        {Stack(("main", "hot")): 2, Stack(("main", "hot", *timer)): 3, Stack((*timer, "net_rx_action_[k]")): 1}
    )
    assert normal(stacks).weights == {Stack(("main", "hot")): 5, Stack((*timer, "net_rx_action_[k]")): 1}


def test_the_kernel_begins_at_its_mark_or_its_entry() -> None:
    assert kernel_from(("main", "write", "vfs_write_[k]", "tcp_sendmsg_[k]")) == 2
    assert kernel_from(("main", "write", "entry_SYSCALL_64_after_hwframe", "tcp_sendmsg")) == 2
    assert kernel_from(("main", "write")) == 2


@given(profiles)
def test_sums_keep_the_total(stacks: Stacks) -> None:
    assert normal(stacks).total == stacks.total
    assert sum(self_weights(stacks).values()) == stacks.total
    assert sum(weight for _, weight in thread_weights(stacks).values()) == stacks.total
    assert max(total_weights(stacks).values()) <= stacks.total
    own, total = self_weights(stacks), total_weights(stacks)
    assert all(own[frame] <= total[frame] for frame in total)


@given(profiles, profiles)
def test_sums_of_merged_profiles_are_merged_sums(a: Stacks, b: Stacks) -> None:
    assert self_weights(Stacks.merged([a, b])) == self_weights(a) + self_weights(b)
    assert total_weights(Stacks.merged([a, b])) == total_weights(a) + total_weights(b)


def tree(stacks: Stacks, *, least: float = 0.0, most: int = 10_000) -> FlameGraph:
    return flame_graph(
        stacks, lambda frame, depth: frame.upper() if depth else f"of {frame}", least=least, most=most, slow={SLICES[0]}
    )


def paths(graph: FlameGraph) -> dict[tuple[str, ...], tuple[int, int]]:
    found, path = {}, list[str]()
    for node in graph.nodes:
        assert node.depth <= len(path), "each node stands below its parent"
        path = [*path[: node.depth], graph.frames[node.frame]]
        assert tuple(path) not in found
        found[tuple(path)] = node.weight, node.slow
    return found


@given(profiles)
def test_a_tree_has_the_weight_of_every_path(stacks: Stacks) -> None:
    graph = tree(stacks)
    expected: dict[tuple[str, ...], list[int]] = {}
    for stack, weight in stacks.weights.items():
        whole = (thread_group(stack.thread), *stack.frames)
        for length in range(1, len(whole) + 1):
            pair = expected.setdefault(whole[:length], [0, 0])
            pair[0] += weight
            pair[1] += weight if stack.slice == SLICES[0] else 0
    assert paths(graph) == {path: tuple(pair) for path, pair in expected.items()}
    assert graph.total == stacks.total
    assert graph.slow == sum(weight for stack, weight in stacks.weights.items() if stack.slice == SLICES[0])
    groups = {graph.frames[node.frame] for node in graph.nodes if node.depth == 0}
    expected_libraries = tuple(f"of {frame}" if frame in groups else frame.upper() for frame in graph.frames)
    assert graph.libraries == expected_libraries


@given(profiles, st.floats(0, 0.5), st.integers(1, 20))
def test_a_pruned_tree_hangs_together_and_keeps_the_heaviest(stacks: Stacks, least: float, most: int) -> None:
    whole, pruned = paths(tree(stacks)), paths(graph := tree(stacks, least=least, most=most))
    assert len(pruned) <= most
    assert pruned.items() <= whole.items()
    lightest = min((weight for weight, _ in pruned.values()), default=0)
    for path, (weight, _) in whole.items():
        if path not in pruned:
            assert weight < least * stacks.total or (len(pruned) == most and weight <= lightest)
    assert graph.least >= least


def test_deep_stacks_need_no_deep_recursion() -> None:
    deep = Stacks({Stack(tuple(f"f{n}" for n in range(5000))): 3})
    assert len(tree(deep).nodes) == 5001


def test_what_was_allocated_is_no_function() -> None:
    stacks = Stacks({Stack(("a/B.make_[j]", "byte[]_[i]")): 2, Stack(("a/B.make_[j]", "byte[]_[k]")): 3})
    assert normal(stacks, of_classes=True).weights == {Stack(("a.B.make", "[byte[]]")): 5}


def test_a_tree_of_just_as_many_frames_as_may_be_is_not_cut() -> None:
    """A thread group of 10, of which 6 are below a and 4 below b: a tree of three frames."""
    stacks = Stacks({Stack(("a",)): 6, Stack(("b",)): 4})
    assert len(tree(stacks, most=3).nodes) == 3
    assert tree(stacks, most=3).least == 0
    cut = tree(stacks, most=2)
    assert [cut.frames[node.frame] for node in cut.nodes][1:] == ["a"]
    assert cut.least == 0.6
    assert tree(stacks, most=2, least=0.7).least == 0.7
    assert [node.weight for node in tree(stacks, least=0.6).nodes] == [10, 6], "six tenths are enough for six tenths"
