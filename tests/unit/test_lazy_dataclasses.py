"""A frozen dataclass whose methods are made when it is first used is the one of the standard library."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from pydantic import BaseModel

from redline import lazily

T = TypeVar("T")
KINDS = [dataclasses.dataclass, lazily.dataclass]


def made(dataclass: Any) -> tuple[Any, Any]:
    @dataclass(frozen=True)
    class Base:
        """A class with a default, a made default, and what has no part in it."""

        first: int
        second: str = "b"
        rest: list[int] = dataclasses.field(default_factory=list, repr=False)
        unit: ClassVar[str] = "ms"

        @cached_property
        def double(self) -> int:
            return 2 * self.first

    @dataclass(frozen=True)
    class Derived(Base):
        third: float = dataclasses.field(default=0.5, kw_only=True)

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("negative")

        def __repr__(self) -> str:
            return "own"

    return Base, Derived


def told(use: Callable[[Any, Any], Any], dataclass: Any) -> Any:
    try:
        return use(*made(dataclass))
    except Exception as error:  # noqa: BLE001 - compared
        return type(error), str(error)


@pytest.mark.parametrize(
    "use",
    [
        lambda base, _: repr(base(1)).rpartition(".")[2],
        lambda base, _: (base(1) == base(1, "b"), base(1) == base(2), base(1) != base(1), base(1) == 1),
        lambda base, derived: (base(1) == derived(1), derived(1) == derived(1, third=0.5)),
        lambda base, _: hash(base(1)),
        lambda _, derived: repr(derived(1)),
        lambda _, derived: (derived(1, "c", [2]).third, derived(1).rest, derived(1).double, derived.unit),
        lambda _, derived: derived(-1),
        lambda base, _: base(),
        lambda base, _: base(1, 2, 3, 4),
        lambda base, _: setattr(base(1), "first", 2),
        lambda base, _: delattr(base(1), "second"),
        lambda base, _: setattr(base(1), "other", 2),
        lambda _, derived: setattr(derived(1), "third", 2),
        lambda _, derived: [(each.name, each.default, each.kw_only) for each in dataclasses.fields(derived)],
        lambda base, _: (dataclasses.is_dataclass(base), base.__match_args__, base.__doc__),
        lambda base, _: (base.__dataclass_params__.frozen, base.second, hasattr(base, "rest")),
        lambda base, _: dataclasses.asdict(dataclasses.replace(base(1), first=3)),
        lambda _, derived: copy.deepcopy(derived(1, "c")).second,
        lambda base, derived: (issubclass(derived, base), isinstance(derived(1), base)),
    ],
)
def test_it_does_what_that_does(use: Callable[[Any, Any], Any]) -> None:
    eager, lazy = (told(use, dataclass) for dataclass in KINDS)
    assert str(lazy) == str(eager)
    assert lazy != (AttributeError, "")


def test_nothing_is_made_before_its_use() -> None:
    base, derived = made(lazily.dataclass)
    assert not any("function" in type(vars(base)[name]).__name__ for name in ("__init__", "__eq__"))
    derived(1)
    assert all("function" in type(vars(kind)["__init__"]).__name__ for kind in (base, derived))


def test_values_are_compared_that_were_never_initialised_here() -> None:
    base, _ = made(lazily.dataclass)
    one, other = object.__new__(base), object.__new__(base)
    for value in (one, other):
        vars(value).update({"first": 1, "second": "b", "rest": []})
    assert one == other
    assert "first=1" in repr(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.first = 2


def test_threads_may_use_a_class_at_the_same_time() -> None:
    for _ in range(50):
        base, _derived = made(lazily.dataclass)
        with ThreadPoolExecutor(8) as pool:
            assert [value.first for value in pool.map(base, range(32))] == list(range(32))


@lazily.dataclass(frozen=True)
class Pair(Generic[T]):
    one: T
    two: T

    def swapped(self) -> "Pair[T]":
        return Pair(self.two, self.one)


def test_a_generic_one_is_pickled_matched_and_part_of_a_model() -> None:
    match pickle.loads(pickle.dumps(Pair(1, 2).swapped())):
        case Pair(one, two):
            assert (one, two) == (2, 1)
        case _:
            pytest.fail("no pair")

    class Holding(BaseModel):
        pair: Pair[int]

    assert Holding.model_validate({"pair": {"one": 1, "two": 2}}).pair == Pair(1, 2)


def test_what_is_not_frozen_or_has_slots_is_made_at_once() -> None:
    @lazily.dataclass
    class Open:
        value: int

    @lazily.dataclass(frozen=True, slots=True)
    class Slotted:
        value: int

    assert "function" in type(vars(Open)["__init__"]).__name__
    assert Slotted(1) == Slotted(1)
    assert not hasattr(Slotted(1), "__dict__")
