"""Documentation of public functions: an example that runs, what to see besides, the cost, and nothing that all say."""

from __future__ import annotations

import doctest
import inspect
import re
import types
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import errors

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # torch's own, of forward mode
TORCH = getattr(find_spec("torch"), "origin", None) is not None
"""Whether torch is installed: a folder of that name is none."""
DASK = ("dask",) if find_spec("dask") and find_spec("distributed") else ()
MODULES = (
    "",
    "linalg",
    "graph",
    "decomposition",
    "plot",
    "masked",
    "io",
    *DASK,
    *(("nn", "torch", "torch.func") if TORCH else ()),
)


def public() -> Iterator[tuple[str, Any]]:
    """(module.name, function) of every public function, each once."""
    seen: set[int] = set()
    for name in MODULES:
        module = import_module(f"openwork.{name}".rstrip("."))
        for key in dir(ow) if not name else module.__all__:
            value = getattr(module, key)
            plain = inspect.unwrap(value) if callable(value) else value
            if key.startswith("_") or isinstance(value, type | types.ModuleType) or not callable(value):
                continue
            if id(plain) not in seen:
                seen.add(id(plain))
                yield f"{name}.{key}".strip("."), value


FUNCTIONS = dict(public())
CLASSES = {
    f"{name}.{key}".strip("."): value
    for name in MODULES
    for key in (dir(ow) if not name else import_module(f"openwork.{name}").__all__)
    if isinstance(value := getattr(import_module(f"openwork.{name}".rstrip(".")), key), type)
    and value.__module__.startswith("openwork")
    and not key.startswith("_")
}
ERRORS = {name: value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)}
SEE = re.compile(r"See Also\n-{8}\n(.*?)(?:\n\n|$)", re.DOTALL)


def test_there_are_some() -> None:
    assert len(FUNCTIONS) > 280


def test_every_function_has_an_example_its_cost_and_what_to_see() -> None:
    docs = {name: inspect.getdoc(f) or "" for name, f in FUNCTIONS.items()}
    lacking = {name: [what for what in (">>> ", "See Also", "Cost") if what not in doc] for name, doc in docs.items()}
    assert {name: what for name, what in lacking.items() if what} == {}


def test_what_is_named_exists() -> None:
    wrong = []
    for name, function in FUNCTIONS.items():
        home = name.rpartition(".")[0]
        found = SEE.search(inspect.getdoc(function) or "")
        named = " ".join(found[1].split()).split(", ") if found else []
        wrong += [(name, other) for other in named if not exists(other, home)]
    assert wrong == []


def exists(other: str, home: str) -> bool:
    """Whether a name after "See also" is one of the module's, the namespace's, NumPy's or a method's, or an operator."""
    if re.fullmatch(r"A \S{1,2} B", other) or (other.startswith(("nn.", "torch.")) and not TORCH):
        return True
    base, _, rest = other.partition(".")
    roots = {"np": np, "A": ow.Tensor, "Tensor": ow.Tensor}
    starts = (
        [(roots[base], rest)]
        if base in roots
        else [(ow, other), (import_module(f"openwork.{home}".rstrip(".")), other)]
    )
    for value, path in starts:
        try:
            for part in path.split("."):
                value = getattr(value, part)
        except AttributeError:
            continue
        return True
    return False


def test_what_is_named_is_another_function() -> None:
    """Neither the function itself nor its method or its name in NumPy is something else to see."""
    wrong = []
    for name, function in FUNCTIONS.items():
        short = name.rpartition(".")[2]
        found = SEE.search(inspect.getdoc(function) or "")
        named = " ".join(found[1].split()).split(", ") if found else []
        wrong += [(name, other) for other in named if other in (name, short, f"A.{short}") or other.startswith("np.")]
    assert wrong == []


def test_no_two_functions_have_the_same_example() -> None:
    shown = Counter((inspect.getdoc(function) or "").partition("\nExamples\n")[2] for function in FUNCTIONS.values())
    assert {text: count for text, count in shown.items() if count > 1} == {}


def test_no_paragraph_stands_on_every_function() -> None:
    paragraphs = Counter(
        " ".join(part.split())
        for function in FUNCTIONS.values()
        for part in set((inspect.getdoc(function) or "").split("\n\n"))
        if ">>>" not in part
        and not part.startswith(("Cost", "Parameters", "Returns", "Raises", "Notes\n-----\nCost", "Examples"))
    )
    assert {text: count for text, count in paragraphs.items() if count > 12} == {}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an example may use without an import."""
    monkeypatch.chdir(tmp_path)
    return {"np": np, "ow": ow, "__name__": "docs"}


def run(name: str, function: Any, names: dict[str, Any]) -> int:
    """The number of examples of a function's documentation. Raises AssertionError where one gives something else."""
    text = inspect.getdoc(function) or ""
    if ">>> " in text and "torch." in text:
        if not TORCH:
            return 1
        names["torch"] = import_module("torch")
    if name.startswith("plot.") and find_spec("matplotlib") is None:
        return 1
    test = doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0)
    said: list[str] = []
    with np.printoptions(legacy=False):
        failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not failed, "".join(said)
    return tried


CHEAP = [name for k, name in enumerate(sorted(FUNCTIONS)) if k % 12 == 0]


def test_a_share_of_the_examples_run(names: dict[str, Any]) -> None:
    for name in CHEAP:
        assert run(name, FUNCTIONS[name], names) > 0


def test_every_class_has_an_example() -> None:
    """But for what `openwork.io` hands to writers of readers, and what modules for other libraries return."""
    lacking = [name for name, c in CLASSES.items() if ">>> " not in (inspect.getdoc(c) or "")]
    assert [name for name in lacking if not name.startswith(("io.", "torch.", "dask."))] == []


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_an_example_that_runs(name: str, names: dict[str, Any]) -> None:
    assert run(name, ERRORS[name], names) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, c in CLASSES.items() if ">>> " in (inspect.getdoc(c) or "")])
def test_examples_of_classes_run(name: str, names: dict[str, Any]) -> None:
    assert run(name, CLASSES[name], names) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_run(name: str, names: dict[str, Any]) -> None:
    if name.startswith("plot."):
        pytest.importorskip("matplotlib").use("agg")
    assert run(name, FUNCTIONS[name], names) > 0


def test_a_wrong_example_is_found(names: dict[str, Any]) -> None:
    def wrong() -> None:
        """Two.

        >>> 1 + 1
        3
        """

    with pytest.raises(AssertionError, match="Expected"):
        run("wrong", wrong, names)


def test_help_begins_with_what_a_user_needs() -> None:
    text = ow.__doc__ or ""
    for word in ("asarray", "A @ x", "asformat", "ow.linalg", "ow.nn", "openwork doctor"):
        assert word in text
    assert run("openwork", ow, {"np": np, "ow": ow, "__name__": "docs"}) > 0
