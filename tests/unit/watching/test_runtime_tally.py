"""Facts of a runtime's events: sums within the window, the longest, and the live set, at a bounded size."""

from redline.model import Pause
from redline.model.runtime import MOST_LIVE, Collection, CollectionKind
from redline.watching.jvm_log import Allocated, CollectorWarning, Named, Stall
from redline.watching.runtime_tally import RuntimeTally, _Longest, _Sums

WINDOW = (1_000, 2_000)


def pause(start: int, length: int, to_safepoint: int = 0) -> Pause:
    return Pause(start_unix_ns=start, duration_ns=length, to_safepoint_ns=to_safepoint, cause="any")


def collection(
    start: int,
    length: int = 10,
    kind: CollectionKind = "full",
    *,
    live: int | None = None,
    cause: str = "",
    before: int = 0,
) -> Collection:
    return Collection(
        start_unix_ns=start, duration_ns=length, kind=kind, cause=cause, live_bytes=live, before_bytes=before or None
    )


def tally(*events: object, heaps: tuple[int, ...] = ()) -> RuntimeTally:
    made = RuntimeTally(WINDOW)
    for at, event in enumerate(events):
        made.add(event, heaps[at] if heaps else 0)  # type: ignore[arg-type]
    return made


def test_what_touches_the_window_counts_and_only_its_part_within_is_paused_time() -> None:
    found = tally(pause(900, 99), pause(900, 100), pause(1_900, 300, 20), pause(2_000, 5), pause(2_001, 5)).facts("jvm")
    assert found.pauses.count == 3
    assert found.pauses.total_ns == 405
    assert found.to_safepoint.total_ns == 20
    assert found.paused_ns == 0 + 100 + 0
    assert [one.start_unix_ns for one in found.longest_pauses] == [900, 1_900, 2_000]


def test_stalls_and_warnings_count_within_the_window() -> None:
    found = tally(
        Stall(900, 99),
        Stall(900, 100),
        Stall(2_001, 5),
        CollectorWarning(999, "humongous"),
        CollectorWarning(1_000, "humongous"),
        CollectorWarning(1_500, "humongous"),
        CollectorWarning(2_000, "evacuation"),
    ).facts("jvm")
    assert (found.stalls.count, found.stalls.total_ns) == (1, 100)
    assert (found.humongous, found.evacuation_failures) == (2, 1)


def test_heaps_of_a_cluster_pause_alone() -> None:
    found = tally(pause(1_100, 50), pause(1_200, 60), pause(1_300, 70), heaps=(1, 1, 2)).facts("node")
    assert found.paused_ns == 110


def test_a_name_said_later_completes_what_is_known() -> None:
    made = tally(Named(collector="G1"), Named(max_heap_bytes=5))
    assert made.collector == "G1"
    assert made.facts("jvm", max_heap_bytes=9).max_heap_bytes == 5
    assert tally().facts("jvm", max_heap_bytes=9).max_heap_bytes == 9


def test_collections_are_summed_by_kind_and_cause_the_longest_first() -> None:
    found = tally(
        collection(1_100, 10, cause="a"), collection(1_200, 30, cause="b"), collection(1_990, 500, cause="a")
    ).facts("jvm")
    assert [(one.cause, one.count, one.total_ns) for one in found.collections] == [("b", 1, 30), ("a", 2, 20)]


def test_causes_past_the_fortieth_are_summed_as_one() -> None:
    found = tally(*(collection(1_000 + at, 1, cause=f"{at:02}") for at in range(43))).facts("jvm")
    named = {one.cause: one.count for one in found.collections}
    assert len(named) == 41
    assert named[""] == 3
    assert named["39"] == 1


def test_the_most_used_is_the_largest_size_before_a_collection() -> None:
    found = tally(collection(1_100, before=5), collection(1_200, before=9), collection(1_300, before=7)).facts("jvm")
    assert found.most_used_bytes == 9
    assert tally(collection(1_100)).facts("jvm").most_used_bytes is None


def live(*events: Collection) -> list[tuple[int, int]]:
    found = tally(*events).facts("jvm")
    return [*zip(found.live_unix_ns, found.live_bytes, strict=True)]


def test_the_live_set_is_known_at_the_end_of_each_collection_that_shows_it() -> None:
    assert live(collection(1_100, live=5), collection(1_200), collection(1_300, 20, live=7)) == [(1_110, 5), (1_320, 7)]


def test_of_mixed_collections_after_a_cycle_the_smallest_live_set_counts() -> None:
    mixed = [collection(1_100 + 10 * at, 1, "mixed", live=size) for at, size in enumerate((9, 6, 7))]
    assert live(*mixed) == [(1_111, 6)]
    again = collection(1_500, 1, "mixed", live=8)
    assert live(*mixed, collection(1_400, 1, "cycle"), again) == [(1_111, 6), (1_501, 8)]
    assert live(*mixed, collection(1_400, 1, "full", live=4), again) == [(1_111, 6), (1_401, 4), (1_501, 8)]


def test_a_long_live_set_keeps_every_second_then_every_fourth_value() -> None:
    def kept(number: int) -> list[int]:
        made = RuntimeTally((0, 10**9))
        for at in range(1, number + 1):
            made.add(collection(at, 1, live=at))
        return list(made.facts("jvm").live_bytes)

    assert kept(MOST_LIVE) == list(range(1, MOST_LIVE + 1))
    assert kept(MOST_LIVE + 1) == list(range(2, MOST_LIVE + 1, 2))
    assert kept(MOST_LIVE + 3) == list(range(2, MOST_LIVE + 4, 2))
    assert kept(2 * MOST_LIVE + 10)[:3] == [4, 8, 12]
    assert len(kept(5 * MOST_LIVE)) <= MOST_LIVE


def test_a_mixed_collection_that_was_left_out_takes_those_after_it_along() -> None:
    made = RuntimeTally((0, 10**9))
    for at in range(1, MOST_LIVE + 3):
        made.add(collection(at, 1, live=50))
    before = made.facts("jvm").live_bytes
    for size in (9, 3):  # the first is the odd one of a pair
        made.add(collection(10**6, 1, "mixed", live=size))
    assert made.facts("jvm").live_bytes == before


def test_an_allocation_counts_as_far_as_its_time_is_within_the_window() -> None:
    found = tally(Allocated(1_100, 1_000, 200), Allocated(1_300, 500, 100), Allocated(2_500, 900, 100)).facts("jvm")
    assert found.allocated_bytes == 500 + 500  # half of the first, all of the second
    assert found.allocating_ns == 200
    assert tally().facts("jvm").allocated_bytes is None


def test_heaps_that_allocate_at_the_same_time_add_their_rates() -> None:
    found = tally(Allocated(1_400, 800, 400), Allocated(1_200, 300, 100), heaps=(1, 2)).facts("node")
    assert found.allocating_ns == 400
    assert found.allocated_bytes == 800 + 300 * 4


def test_the_longest_are_kept_in_the_order_of_their_times() -> None:
    longest = _Longest[Pause](2)
    for start, length in ((30, 5), (20, 9), (10, 7)):
        longest.add(pause(start, length))
    assert [(one.start_unix_ns, one.duration_ns) for one in longest.in_order()] == [(10, 7), (20, 9)]


def test_sums_of_more_than_a_batch_lose_nothing() -> None:
    sums = _Sums()
    for at in range(5_000):
        sums.add(at + 1)
    found = sums.durations()
    assert (found.count, found.histogram.count, found.total_ns) == (5_000, 5_000, 12_502_500)
