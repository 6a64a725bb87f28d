"""The modules that everything stands on: classes of fields, provided names, integers, waiting for imports, the end of a command."""

from __future__ import annotations

import copy
import pickle
import sys
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

import openwork as ow
from openwork import interruptible, namespaces, quiet_interrupt
from openwork.classes import define, frozen
from openwork.errors import DTypeError, ShapeError
from openwork.integers import extents, integer
from openwork.provided import provide, provided

TABLE = provide("a table of this test", {"exp": 3})
table_by_name: Any = provided("a table of this test", __name__)
zeros: Any = provided("zeros", __name__)


@frozen
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list, compare=False, repr=False)
    norm: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", abs(self.x) + abs(self.y))


@dataclass(frozen=True, slots=True)
class PointOfTheLibrary:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list, compare=False, repr=False)
    norm: float = field(init=False, default=0.0)

    __post_init__ = Point.__post_init__


@frozen
class Point3(Point):
    z: int = 7


@define
class Counter:
    n: int = 0

    def __repr__(self) -> str:
        return f"<{self.n}>"


@frozen(eq=False)
class Token:
    pass


@frozen
class Name:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self.text.lower() == other.text.lower()


def test_classes_of_fields_are_dataclasses() -> None:
    """What they do is what those of `dataclasses` do."""
    for make in (Point, PointOfTheLibrary):
        a, b = make(3), make(x=3, y=0.5, tags=["t"])
        assert a == b
        assert hash(a) == hash(b) == hash((3, 0.5, 3.5))
        assert a != make(4)
        assert a != (3, 0.5, 3.5)
        assert (a.tags, b.tags, a.norm) == ([], ["t"], 3.5)
        assert make(1).tags is not make(1).tags
        assert repr(a) == f"{make.__name__}(x=3, y=0.5, norm=3.5)"
        assert [f.name for f in fields(a)] == ["x", "y", "tags", "norm"]
        assert replace(b, x=-1).norm == 1.5
        match a:
            case make(x, y):  # type: ignore[misc]
                assert (x, y) == (3, 0.5)
            case _:
                pytest.fail("patterns by place")
        for change in (lambda: setattr(a, "x", 1), lambda: delattr(a, "x"), lambda: setattr(a, "other", 1)):  # noqa: B023
            with pytest.raises((FrozenInstanceError, TypeError)):
                change()
        assert copy.copy(b) == copy.deepcopy(b) == pickle.loads(pickle.dumps(b)) == b
        with pytest.raises(TypeError, match=f"{make.__name__}.__init__.*missing 1 required positional argument: 'x'"):
            make()
        with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
            make(3, w=1)
    assert Point(3) != PointOfTheLibrary(3)
    assert Point3(1, z=2) == Point3(1, z=2) != Point3(1)
    assert Point3(1).norm == 1.5
    assert Point(1) != Point3(1)
    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)
    assert repr(counter) == "<1>"
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(AttributeError):
        counter.m = 1
    assert hash(Name("a")) == hash(("a",))  # as dataclasses have it, beside an __eq__ of one's own
    assert Name("a") == Name("A")
    assert Token() != Token()
    assert len({Token(), Token()}) == 2


def test_provided_names() -> None:
    assert repr(zeros) == "provided('zeros')"
    table = table_by_name
    assert table["exp"] == 3
    with pytest.raises(KeyError):
        table["frobnicate"]
    assert table_by_name is TABLE, "the name is the table from then on"
    made = zeros
    assert made((2, 3)).shape == made((2, 3)).shape == (2, 3)
    assert zeros is not made


def test_what_is_no_integer_is_shown() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    with pytest.raises(DTypeError, match="f: n is an integer; got: an object of type Silent of type Silent"):
        integer(Silent(), "f", "n")
    with pytest.raises(DTypeError, match=r"got: \[0, 0, .*\.\.\. of type list"):
        integer([0] * 1000, "f", "n")
    with pytest.raises(DTypeError, match=r"got: 2\.0 of type float\n  help: give an int.*2"):
        integer(2.0, "f", "n")
    for wrong in (Silent(), "3", 2.5, (2, 1.5), None):
        with pytest.raises(TypeError, match="a shape is a tuple of integers"):
            extents(wrong, "f")
    with pytest.raises(ShapeError, match="negative extent"):
        extents((3, -1), "f")
    assert extents((3, -1), "f", negative=True) == (3, -1)
    assert extents(3, "f") == (3,)


def test_namespaces_without_files_name_nothing() -> None:
    public = namespaces._public.__wrapped__
    assert public("absent") == frozenset()
    assert "cg" in public("linalg")


def test_an_interrupted_command_says_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet_interrupt._in_one_line(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "openwork: interrupted\n"
    quiet_interrupt._in_one_line(ValueError, ValueError("wrong"), None)
    assert capsys.readouterr().err == "ValueError: wrong\n"
    for argv, orig_argv, expected in (
        (["/usr/bin/openwork", "info"], ["python", "/usr/bin/openwork", "info"], True),
        (["-m"], ["python", "-m", "openwork"], True),
        (["-m"], ["python", "-m", "pytest", "openwork"], False),
        (["openwork.py"], ["python", "openwork.py"], False),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "orig_argv", orig_argv)
        assert quiet_interrupt._is_command() == expected


def test_long_work_without_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(interruptible, "_idle", [])
    monkeypatch.setattr(interruptible, "start_new_thread", refuse)
    assert interruptible.call(lambda a, b: a - b, 5, 3) == 2
    with pytest.raises(ZeroDivisionError):
        interruptible.call(lambda: 1 // 0)
    assert interruptible._idle == []
    assert ow.ones((3, 3), format="csr").sum() == 9
