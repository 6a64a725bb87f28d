"""The parameters of everything public, their kinds and defaults: the same as in `signatures.txt`.

A change of that file is a change of what callers may write: look at the difference, then
`pytest tests/test_signatures.py --update-golden`, and say it in the changelog.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import openwork as ow

MODULES = (
    "openwork", "openwork.compat.pydata_sparse", "openwork.compat.scipy_sparse", "openwork.dask", "openwork.decomposition", "openwork.graph", "openwork.io", "openwork.lib.stride_tricks",
    "openwork.linalg", "openwork.masked", "openwork.nn", "openwork.plot", "openwork.torch", "openwork.torch.func",
)  # fmt: skip
FILE = Path(__file__).with_name("signatures.txt")
_PLACE = re.compile(r" at 0x[0-9a-f]+")


@pytest.mark.parametrize("module", [m for m in MODULES if m != "openwork.compat.scipy_sparse"])  # that one is SciPy's
def test_a_name_that_is_not_there_names_the_module(module: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{re.escape(module)}' has no attribute 'qqqqqq'"):
        import_module(module).qqqqqq  # noqa: B018


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of what is callable and ours, methods under `Class.name`."""
    for name in sorted({*module.__all__, *(n for n in dir(module) if not n.startswith("_"))}):
        value = getattr(module, name)
        if inspect.ismodule(value) or not callable(value) or not _ours(value):
            continue
        if not inspect.isclass(value):
            yield name, value
        elif not issubclass(value, BaseException):
            for key in dir(value):
                method = inspect.getattr_static(value, key)
                plain = method.__func__ if isinstance(method, (classmethod, staticmethod)) else method
                if (not key.startswith("_") or key == "__init__") and inspect.isroutine(plain) and _ours(plain):
                    yield f"{name}.{key}", getattr(value, key)


def _ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("openwork")


def line(name: str, value: Any) -> str:
    """The name with its parameters, without annotations: `sum(A, axis=None, *, dtype=None)`."""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return name
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return f"{name}{_PLACE.sub('', str(text))}"


def lines() -> list[str]:
    found = []
    for name in MODULES:
        found += [f"[{name}]", *(line(*entry) for entry in public(import_module(name))), ""]
    return found


def test_nothing_public_changed_unseen(update_golden: bool) -> None:
    pytest.importorskip("torch")
    text = "\n".join(lines())
    if update_golden:
        FILE.write_text(text, encoding="utf-8")
    want, got = FILE.read_text(encoding="utf-8").splitlines(), text.splitlines()
    changed = [f"- {n}" for n in want if n not in got] + [f"+ {n}" for n in got if n not in want]
    assert text.splitlines() == want, "\n".join(changed)


MANY = {
    "*arrays", "*arrays_and_dtypes", "*axes", "*coordinates", "*expressions", "*extents", "*operands", "*place", "*shape", "*shapes",
    "*sizes", "explain(*args)", "evaluate(**tensors)", "vjp(*primals)",
}  # fmt: skip
"""Arguments of which there may be any number, all of one kind."""
OWN = [m for m in MODULES if "compat" not in m]  # those have the signatures of SciPy and pydata/sparse
CONSTRUCTORS = {"Tensor.__init__", "MaskedTensor.__init__"}
"""Classes that are not called: they take anything and name the functions that make one."""


@pytest.mark.parametrize("module", OWN)
def test_a_signature_names_its_arguments(module: str) -> None:
    pytest.importorskip("torch")
    unnamed = []
    for name, value in public(import_module(module)):
        try:
            parameters = inspect.signature(value).parameters.values()
        except (ValueError, TypeError):
            continue
        for p in parameters:
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                text = str(p.replace(annotation=p.empty))
                if not {text, f"{name}({text})"} & MANY and name not in CONSTRUCTORS:
                    unnamed.append(f"{name}({text})")
    assert not unnamed


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("module", OWN)
def test_types_are_shown_without_quotes(module: str) -> None:
    pytest.importorskip("torch")
    texts = {name: str(inspect.signature(value)) for name, value in public(import_module(module))}
    assert [name for name, text in texts.items() if re.search(r"(: |-> )['\"]", text)] == []


@pytest.mark.parametrize("module", OWN)
def test_a_misspelt_keyword_is_named(module: str) -> None:
    pytest.importorskip("torch")
    wrong = []
    for name, value in public(import_module(module)):
        if "." in name or inspect.isclass(value) or name == "evaluate":  # whose keywords are the caller's names
            continue
        parameters = inspect.signature(value).parameters.values()
        places = sum(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters)
        try:
            value(*[ow.eye(2)] * places, qqqqq=1)
        except TypeError as error:
            if "qqqqq" not in str(error):
                wrong.append(f"{name}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
        else:
            wrong.append(name)
    assert not wrong
