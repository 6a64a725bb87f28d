"""Docstrings of public functions and methods in numpydoc's form: every parameter with its type and what it means."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import pytest
from test_docstrings import FUNCTIONS, TORCH, run
from test_docstrings import names as names

import openwork as ow
from openwork.docstrings import compose, parse
from openwork.lazy_docstring import Documentation
from openwork.tensor.documentation import as_method

numpydoc = pytest.importorskip("numpydoc.validate")
docscrape = pytest.importorskip("numpydoc.docscrape")

OFF = {
    "GL01": "our docstrings begin on the line of the quotes, as PEP 257 allows and ruff's formatter leaves them",
    "GL02": "as GL01, of the end",
    "ES01": "a first line that says all needs no second paragraph",
    "SA04": "names under See Also are links to pages that say what these functions do",
}
"""The checks of numpydoc that are not asked for, and why; all others are."""


CLASSES = (ow.Tensor, ow.MaskedTensor)
METHODS = {
    f"{c.__name__}.{name}": method
    for c in CLASSES
    for name in dir(c)
    if not name.startswith("_") and isinstance(method := inspect.getattr_static(c, name), FunctionType)
}


def faults(thing: Any) -> list[str]:
    """What numpydoc finds wrong with a docstring."""
    found = numpydoc.validate(docscrape.get_doc_object(thing))["errors"]
    return [f"{code}: {text}" for code, text in found if code not in OFF]


@pytest.mark.ci
def test_every_function_describes_its_parameters_results_and_errors() -> None:
    wrong = {name: faults(f) for name, f in FUNCTIONS.items()}
    assert {name: what for name, what in wrong.items() if what} == {}


def test_there_are_some_methods() -> None:
    assert len(METHODS) > 380


@pytest.mark.thin(18)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_describes_its_parameters_results_and_errors(name: str) -> None:
    assert faults(METHODS[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_examples_of_methods_run(name: str, names: dict[str, Any]) -> None:
    if "to_torch" in name and not TORCH:
        pytest.skip("torch is not installed")
    assert run(name, METHODS[name], names) > 0


def test_examples_of_functions_become_calls_of_methods() -> None:
    text = ">>> ow.sum(ow.sum(A, axis=0)), ow.sum([1, 2])\n3\n>>> B = ow.sum(-A) + 1"
    assert as_method(text, "sum") == ">>> A.sum(axis=0).sum(), ow.sum([1, 2])\n3\n>>> B = (-A).sum() + 1"


def test_a_fault_is_found() -> None:
    def function(x: int, y: int) -> int:
        """Gives a sum.

        Parameters
        ----------
        x : int
            the first
        """
        return x + y

    codes = {fault[:4] for fault in faults(function)}
    assert {"SS05", "PR01", "PR08", "PR09", "RT01", "SA01", "EX01"} <= codes


# -- how they are made -------------------------------------------------------------------------------------------------

SOURCE = """The sum over `axis`. Of integers exact.

offset : of the diagonal
more, most : Tensor, shape (n,); read once

Cost: O(nse). Raises ShapeError where shapes differ, or are none, and numpy.linalg.LinAlgError, with the row, where it is
singular.
See also: mean, linalg.norm.

Examples
--------
>>> 1
1
"""

COMPOSED = """The sum over `axis`.

Of integers exact.

Parameters
----------
x : Tensor or array_like
    The tensor, of any format.
offset : int, default 0
    The offset of the diagonal.
more, most : Tensor, optional
    Shape (n,); read once.

Returns
-------
Tensor
    What the rule says.

Raises
------
ShapeError
    Where shapes differ, or are none.
numpy.linalg.LinAlgError
    With the row, where it is singular.

See Also
--------
mean, linalg.norm

Notes
-----
Cost: O(nse).

Examples
--------
>>> 1
1
"""


def test_sections_are_composed_from_the_source_and_the_signature() -> None:
    def function(x: Any, /, *, offset: int = 0, more: Any = None, most: Any = None) -> Any: ...

    assert compose(SOURCE, inspect.signature(function), result=("Tensor", "What the rule says.")) == COMPOSED


def test_a_section_that_the_source_does_not_write_is_refused() -> None:
    with pytest.raises(ValueError, match="write a paragraph with a label"):
        parse("Sum.\n\nRaises\n------\nValueError\n    Always.")


def test_documentation_reads_as_a_string_everywhere() -> None:
    calls = []
    doc = Documentation("short", lambda: calls.append(1) or "the long\ntext")  # type: ignore[func-returns-value]
    assert (str.__len__(doc), calls) == (5, [])
    assert (str(doc), f"{doc}", doc.split("\n"), len(doc)) == (
        "the long\ntext",
        "the long\ntext",
        ["the long", "text"],
        13,
    )
    assert doc == "the long\ntext"
    assert hash(doc) == hash("the long\ntext")
    assert "long" in doc
    assert inspect.cleandoc(doc) == "the long\ntext"
    assert calls == [1]


def test_nothing_is_composed_by_an_import() -> None:
    assert isinstance(ow.sum.__doc__, Documentation)
    assert isinstance(ow.format.__doc__, Documentation)
