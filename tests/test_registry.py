"""Operations are listed by their blocks and nowhere else: no module has a literal table of their names."""

from __future__ import annotations

import ast
import pydoc
import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
from openwork import tables
from openwork.ir.operations import OPERATIONS as OF_LOOPS
from openwork.runtime.operation import block
from openwork.tensor.methods import Methods

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "openwork"

NAMES = {*tables.NAMES, *tables.NUMPY, *tables.TORCH} - (OF_LOOPS.keys() - tables.NAMES)
"""What operations are called, but for the loop IR's own short names."""
FEW = 8
"""So many names in one literal are a list of operations."""

ALLOWED = {
    "tables.py": "made from the blocks",
    "homes.py": "made from the blocks, and from what modules provide",
    "ir/operations.py": "where the loop IR's operations are defined",
    "compiler/derivative.py": "the gradient of each operation of the loop IR that has a rule",
    "ir/arithmetic.py": "what the loop IR's operations do, where NumPy's function is another",
    "codegen/emit_float.py": "machine code of each operation of the loop IR on floats",
    "codegen/emit_integer.py": "machine code of each operation of the loop IR on integers",
    "codegen/emit_opencl_c.py": "OpenCL C of each operation of the loop IR",
    "codegen/emit_complex.py": "machine code of each operation of the loop IR on complex numbers",
    "torch/dependence_rules.py": "operations of torch, by ATen's names, and what their results depend on",
    "masked/examples.py": "examples of the methods of masked tensors, which print missing elements",
    "tensor/lazy.py": "the reductions that fuse, with the operation that combines elements",
}


def _texts(nodes: list[ast.expr | None]) -> set[str]:
    """What strings, names and attributes among these nodes say."""
    said = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return (
        said
        | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        | {n.id for n in nodes if isinstance(n, ast.Name)}
    )


def _exports(tree: ast.AST) -> set[int]:
    """The nodes of `__all__`, which says what a module has."""
    return {
        id(node)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in statement.targets)
        for node in ast.walk(statement)
    }


def lists(text: str) -> Iterator[tuple[int, set[str]]]:
    """(line, names) of every literal that lists operations, by its keys, its values or its elements."""
    if len(NAMES.intersection(re.findall(r"\w+", text))) < FEW:
        return
    tree = ast.parse(text)
    exports = _exports(tree)
    for node in ast.walk(tree):
        if id(node) in exports:
            continue
        parts: list[list[ast.expr | None]] = []
        if isinstance(node, ast.Dict):
            parts = [list(node.keys), list(node.values)]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = [list(node.elts)]
        for part in parts:
            if len(named := _texts(part) & NAMES) >= FEW:
                yield node.lineno, named


def found(root: Path) -> dict[str, list[tuple[int, set[str]]]]:
    """The lists of each file that has one."""
    out = {str(p.relative_to(root)): list(lists(p.read_text())) for p in sorted(root.rglob("*.py"))}
    return {name: rows for name, rows in out.items() if rows}


@pytest.mark.ci
def test_no_module_lists_operations_by_hand() -> None:
    unexpected = {name: rows for name, rows in found(PACKAGE).items() if name not in ALLOWED}
    assert unexpected == {}, (
        "an operation says in its block where it is known: see CONTRIBUTING, how to add an operation"
    )


def test_what_is_allowed_is_there() -> None:
    stale = {name for name in ALLOWED if not (PACKAGE / name).exists() or not list(lists((PACKAGE / name).read_text()))}
    assert stale == set()


@pytest.mark.parametrize(
    "text",
    [
        'T = {"exp": 1, "log": 2, "sin": 3, "cos": 4, "tan": 5, "sqrt": 6, "floor": 7, "ceil": 8}',
        "T = (ops.exp, ops.log, ops.sin, ops.cos, ops.tan, ops.sqrt, ops.floor, ops.ceil)",
        'for name in ["sum", "prod", "mean", "min", "max", "any", "all", "var"]:\n    pass',
        'T = frozenset(("roll", "flip", "take", "tile", "squeeze", "stack", "concat", "reshape"))',
        'T = {"a": exp, "b": log, "c": sin, "d": cos, "e": tan, "f": sqrt, "g": floor, "h": ceil}',
    ],
)
def test_the_lint_finds_a_list(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert list(found(tmp_path)) == ["module.py"]


@pytest.mark.parametrize(
    "text",
    [
        '__all__ = ["exp", "log", "sin", "cos", "tan", "sqrt", "floor", "ceil"]',
        'T = {"exp": 1, "log": 2, "rows": 3, "csr": 4, "coo": 5, "bsr": 6, "i64": 7, "f64": 8}',
    ],
)
def test_the_lint_lets_pass(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert found(tmp_path) == {}


def test_a_spelling_turns_another_librarys_arguments_into_ours() -> None:
    t = ow.asarray(np.arange(6.0).reshape(2, 3), format="csr")
    spelled = block("roll").spelled("torch", "roll")
    assert spelled.ours == {"shifts": "shift", "dims": "axis"}
    for args, options in (
        ((t, 1, 1), {}),
        ((t, 1), {"dims": 1}),
        ((t,), {"shifts": 1, "dims": 1}),
        ((t, 1), {"axis": 1}),
    ):
        got = spelled.call(ow.roll, args, options)
        np.testing.assert_array_equal(got.to_numpy(), np.roll(t.to_numpy(), 1, 1))
    with pytest.raises(ow.UnsupportedError, match=r"roll: .*'order'\n  supported: roll\(shifts, dims=None\)"):
        spelled.call(ow.roll, (t, 1), {"order": "C"})


@pytest.mark.parametrize("name", sorted(tables.TORCH))
def test_a_spelling_names_arguments_that_the_operation_has(name: str) -> None:
    torch = pytest.importorskip("torch")
    operation = block(tables.TORCH[name])
    spelled = operation.spelled("torch", name)
    assert set(spelled.ours.values()) <= set(signature(operation.function).parameters)
    places = (torch, torch.Tensor, torch.linalg)
    assert any(hasattr(place, name) for place in places) or hasattr(torch.Tensor, f"__{name}__")


def test_numpys_diagonal_has_numpys_axes_on_masked_tensors_too() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    m = ow.masked_tensor(x, x % 5 > 0)
    np.testing.assert_array_equal(np.diagonal(m).to_numpy(-1), np.where(x % 5 > 0, x, -1).diagonal())
    np.testing.assert_array_equal(np.diagonal(ow.asarray(x), 1).to_numpy(), np.diagonal(x, 1))


BY_HAND = {
    "astype": "what `ow.astype` calls",
    "reshape": "takes extents one by one",
}
"""Methods of Tensors that are operations and whose bodies are no blocks' functions."""


def test_methods_come_from_the_blocks() -> None:
    members = {
        name: m.fget if isinstance(m, property) else m for name, m in vars(ow.Tensor).items() if name in tables.NAMES
    }
    assert len(members) > 130
    made = {name for name, f in members.items() if f.__module__ == Methods.__module__ or f is block(name).function}
    assert members.keys() - made == BY_HAND.keys()


def test_help_shows_one_class() -> None:
    for cls in (ow.Tensor, ow.MaskedTensor):
        assert cls.__mro__ == (cls, object)
        text = pydoc.plain(pydoc.render_doc(cls))
        assert "Method resolution order" not in text
        assert "inherited from" not in text
        assert f"class {cls.__name__}(builtins.object)" in text
    assert isinstance(ow.asarray([1.0]).T, ow.Tensor)


def test_methods_take_by_place_what_their_blocks_say() -> None:
    x = np.arange(12.0).reshape(3, 4)
    t, m = ow.asarray(x, format="csr"), ow.masked_tensor(x, x % 5 > 0)
    np.testing.assert_array_equal(t.sum(1).to_numpy(), x.sum(1))
    np.testing.assert_array_equal(t.diagonal(1, axis1=0).to_numpy(), x.diagonal(1))
    np.testing.assert_array_equal(m.diagonal(1).to_numpy(-1), np.where(x % 5 > 0, x, -1).diagonal(1))
    np.testing.assert_array_equal(m.real.to_numpy(-1), m.to_numpy(-1))
    np.testing.assert_allclose(t.var(0, ddof=1).to_numpy(), x.var(0, ddof=1))
    assert ow.lazy(t).imag.compute().nse == t.nse
    with pytest.raises(TypeError, match="multiple values for argument 'axis'"):
        t.sum(0, axis=1)
    with pytest.raises(TypeError, match="takes 3 arguments by place; got 4"):
        m.diagonal(0, 0, 1, 1)
    assert t.sum.__doc__.startswith("The sum over `axis`")


def test_methods_take_grad() -> None:
    torch = pytest.importorskip("torch")
    values = torch.eye(3).to_sparse_csr().requires_grad_()
    t = ow.asarray(values)
    t.sum(0, grad="dense").to_dense().sum().backward()
    assert values.grad is not None
