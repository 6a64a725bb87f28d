"""What is shared in `openwork.compat.scipy_sparse`: a call that reads writes nothing, in-place forms write where SciPy's do.

The methods are those of the classes as Python lists them; those that change an array are named, and nothing else is.
"""

from __future__ import annotations

import operator
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as theirs

import openwork as ow
from openwork.compat import scipy_sparse as ours

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
KINDS = [f"{f}_{c}" for f in FORMATS for c in ("array", "matrix")]
CHANGES = {
    "__init__", "__setattr__", "__delattr__", "__setitem__", "__delitem__", "__setstate__", "__iadd__", "__isub__", "__imul__",
    "__itruediv__", "__ior__", "clear", "eliminate_zeros", "pop", "popitem", "prune", "resize", "set_shape", "setdefault",
    "setdiag", "sort_indices", "sum_duplicates", "update",
}  # fmt: skip
"""The methods that change an array. What is not here reads."""
OBJECTS = {"__class__", "__class_getitem__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__getattr__",
           "__dir__", "__sizeof__", "__format__", "fromkeys", "__tensor__", "__slots__", "__dict__",
           "__abstractmethods__", "__weakref__"}  # fmt: skip
"""What Python asks of any object, and what makes an array of none."""


def made(kind: str) -> Any:
    """A 4 x 4 array out of order, with duplicates and stored zeros where the class may have them."""
    format = kind[:3]
    make = getattr(ours, kind)
    rows = np.array([0, 0, 0, 2, 2, 3, 3, 1])
    columns = np.array([3, 0, 3, 2, 1, 1, 1, 0])
    data = np.array([1.0, 2, 4, 8, 0, 16, 32, -5])
    if format in ("csr", "csc"):
        return make((data, columns, np.array([0, 3, 3, 5, 8])), shape=(4, 4))
    if format == "coo":
        return make((data, (rows, columns)), shape=(4, 4))
    if format == "bsr":
        blocks = np.arange(1.0, 17).reshape(4, 2, 2)
        blocks[1, 0] = 0
        return make((blocks, np.array([1, 0, 1, 1]), np.array([0, 3, 4])), shape=(4, 4))
    if format == "dia":
        return make((np.arange(15.0).reshape(3, 5), np.array([2, 0, -1])), shape=(4, 4))
    return make(theirs.coo_array((data, (rows, columns)), shape=(4, 4)).toarray())


def words(x: Any) -> bytes:
    """The bytes of whatever a result holds: buffers as they lie, numbers and dense arrays."""
    if theirs.issparse(x) and hasattr(type(x), "__tensor__"):
        return words(vars(x.to_scipy() if x.format in ("lil", "dok") else x._buffers.view)) + words(x.tensor)
    if isinstance(x, ow.Tensor):
        s = x._storage
        return words([b for b in (*s.pos, *s.crd, s.values) if b is not None])
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x.tobytes() + str(x.dtype).encode()
    if isinstance(x, dict):
        return words(
            [x[k] for k in x if k not in ("_has_canonical_format", "_has_sorted_indices", "has_canonical_format")]
        )
    if isinstance(x, list | tuple):
        return b"|".join(words(y) for y in x)
    return repr(x).encode()


def methods(kind: str) -> Iterator[str]:
    for name in sorted({*dir(getattr(ours, kind)), *dir(getattr(theirs, kind))} - CHANGES - OBJECTS):
        if not name.startswith("_") or name.startswith("__"):
            yield name


def arguments(x: Any) -> Iterator[tuple[Any, ...]]:
    vector = np.arange(1.0, 5)
    yield from (
        (),
        (0,),
        (1, 2),
        ((1, 2),),
        (vector,),
        (type(x)(np.eye(4)),),
        (x,),
        (2,),
        ("csr",),
        ((2, 8),),
        (np.eye(4),),
        (None,),
    )


def computed(x: Any) -> list[Any]:
    """Arrays and Tensors made of x before, some of which share buffers with it."""
    return [
        x * 2,
        -x,
        abs(x),
        x.T,
        x + x,
        x.copy(),
        x.tocoo(copy=False),
        x.tocsr(),
        x.tensor,
        x.tensor * 3,
        x.tensor.T,
        3 * x.T,
    ]


@pytest.mark.ci
@pytest.mark.thin(15)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_a_call_that_reads_changes_nothing(kind: str) -> None:
    never = []
    for name in methods(kind):
        x = made(kind)
        others = computed(x)
        before = words([x, *others])
        taken = 0
        for given in arguments(x):
            operands = words(given)
            try:
                found = getattr(x, name)
                found = found(*given) if callable(found) else found
                list(found) if name == "__iter__" else None
            except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError):
                continue
            taken += found is not NotImplemented
            assert words(given) == operands, f"{kind}.{name} changed its argument {given!r}"
            assert words([x, *others]) == before, f"{kind}.{name}{given!r} changed the array, or one computed from it"
        if not taken:
            never.append(name)
    refused = {
        "__bool__",
        "__hash__",
        "__len__",
        "__reversed__",
        "__or__",
        "__ror__",
        "__rpow__",
        "__div__",
        "__rdiv__",
        "__idiv__",
    }
    unavailable = {"__floordiv__", "__rtruediv__", "__copy__", "__deepcopy__", "maxprint", "__array__"}
    unavailable |= {"__getitem__", "__iter__"} if kind[:3] in ("dia", "bsr") or kind == "coo_matrix" else set()
    assert set(never) <= refused | unavailable, sorted(set(never) - refused - unavailable)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "spsolve": lambda m, x: m.linalg.spsolve(x, np.ones(4)), "splu": lambda m, x: m.linalg.splu(x), "norm": lambda m, x: m.linalg.norm(x),
    "inv": lambda m, x: m.linalg.inv(x), "spsolve_triangular": lambda m, x: m.linalg.spsolve_triangular(x, np.ones(4)), "find": lambda m, x: m.find(x),
    "connected_components": lambda m, x: m.csgraph.connected_components(x), "kron": lambda m, x: m.kron(x, x), "hstack": lambda m, x: m.hstack([x, x]),
    "minimum_spanning_tree": lambda m, x: m.csgraph.minimum_spanning_tree(x), "scipy max": lambda m, x: x.to_scipy().max(),
    "scipy sorted": lambda m, x: x.to_scipy().sum_duplicates(), "tril": lambda m, x: m.tril(x), "a Tensor with it": lambda m, x: x.tensor + x,
    "pickle": lambda m, x: pickle.loads(pickle.dumps(x)), "scipy times": lambda m, x: theirs.csr_array(np.eye(4)) @ x,
}  # fmt: skip


@pytest.mark.thin(9)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_a_function_that_reads_changes_nothing(kind: str) -> None:
    for name, call in FUNCTIONS.items():
        x = made(kind)
        others = computed(x)
        before = words([x, *others])
        try:
            call(ours, x)
        except (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError, np.linalg.LinAlgError):
            continue
        assert words([x, *others]) == before, f"{name} of {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_scale_in_place_as_scipy_does(kind: str) -> None:
    x = made(kind)
    dense, alias, doubled, tensor = x.toarray(), x, x * 2, x.tensor
    x *= 3
    assert x is alias
    x /= 2
    assert alias is x
    for got in (alias.toarray(), alias.tensor.to_numpy(), ow.asarray(alias).to_numpy(), (alias + alias).toarray() / 2):
        np.testing.assert_array_equal(got, dense * 1.5)
    np.testing.assert_array_equal(doubled.toarray(), dense * 2)
    if kind[:3] not in ("dia", "lil", "dok"):  # those have no values that a Tensor is over, here
        np.testing.assert_array_equal(tensor.to_numpy(), dense * 1.5)
    x += x
    np.testing.assert_array_equal(x.toarray(), dense * 3)
    with pytest.raises((TypeError, ValueError)):
        x *= "text"


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_not_scaled_by_fractions_in_place_where_scipy_refuses(kind: str) -> None:
    def run(module: Any) -> Any:
        x = getattr(module, kind)(np.diag([1, 2, 3]))
        try:
            return operator.imul(x, 1.5).toarray().tolist()
        except Exception as error:
            return type(error)

    assert run(ours) == run(theirs)


@pytest.mark.parametrize("kind", [k for k in KINDS if k[:3] in ("csr", "csc", "coo", "bsr", "dia")])
def test_indices_that_a_caller_writes_are_read(kind: str) -> None:
    """Duplicates that a write makes are summed everywhere; arrays computed before keep their places."""
    x, s = made(kind), getattr(theirs, kind)(made(kind).to_scipy())
    dense = x.toarray()
    before = [x * 2, 4 * x, x.tensor * 2]
    for y in (x, s):
        where = {"coo": "col", "dia": "offsets"}.get(y.format, "indices")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(y, where)[:] = np.roll(getattr(y, where), 1) if y.format == "dia" else 0
    want = s.toarray()
    assert not np.array_equal(want, dense)
    for got in (
        x.toarray(),
        x.tensor.to_numpy(),
        x @ np.eye(4),
        x.T.toarray().T,
        x.tocsr().toarray(),
        (x * 2).toarray() / 2,
    ):
        np.testing.assert_array_equal(got, want)
    assert x.tocsr()[0, 0] == want[0, 0]
    assert x.tocsr().max() == want.max()
    for earlier, factor in zip(before, (2, 4, 2), strict=True):
        np.testing.assert_array_equal(
            earlier.to_numpy() if isinstance(earlier, ow.Tensor) else earlier.toarray(), dense * factor
        )


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_a_caller_writes_are_read(kind: str) -> None:
    x = made(kind)
    dense, doubled = x.toarray(), x * 2
    for _ in range(2):
        if kind.startswith("lil"):
            x.data[0][0] = 77.0
        elif kind.startswith("dok"):
            x._dict[0, 0] = 77.0
        else:
            x.data[...] = 77.0
        got = x.toarray()
        assert 77.0 in got.ravel() or 154.0 in got.ravel()
        np.testing.assert_array_equal(x.tensor.to_numpy(), got)
        np.testing.assert_array_equal(x @ np.eye(4), got)
        assert x.max() == got.max() if kind[:3] in ("csr", "csc", "coo", "bsr") else True
    np.testing.assert_array_equal(doubled.toarray(), dense * 2)


def test_slices_and_functions_have_values_of_their_own() -> None:
    x = ours.csr_array(np.arange(16.0).reshape(4, 4))
    for part in (
        x[1:3],
        x[2],
        x[:, :],
        x.floor(),
        x.conj(),
        x + ours.csr_array((4, 4)),
        x.maximum(ours.csr_array((4, 4))),
    ):
        part.data[:] = -1
        np.testing.assert_array_equal(x.toarray(), np.arange(16.0).reshape(4, 4))
    x.T.data[:] = 3  # a transpose is over the same values, as SciPy's
    assert set(x.data) == {3.0}


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "bsr_array"])
def test_an_assigned_zero_is_stored(kind: str) -> None:
    x = getattr(ours, kind)(np.diag([1.0, 2, 3, 4]))
    x[0, 1] = 0
    x[2, 2] = 0
    assert x.nnz == x.tensor.nse == {"csr": 5, "csc": 5, "bsr": x.data.size}[kind[:3]]
    assert x.tocoo().nnz > x.count_nonzero() == 3
    np.testing.assert_array_equal(x.toarray(), np.diag([1.0, 2, 0, 4]))
    x.eliminate_zeros()
    assert x.count_nonzero() == 3


@pytest.mark.parametrize("kind", ["lil_array", "dok_matrix"])
def test_an_assigned_zero_is_not_stored(kind: str) -> None:
    x = getattr(ours, kind)(np.diag([1.0, 2, 3, 4]))
    x[0, 1] = 0
    x[2, 2] = 0
    assert x.nnz == x.tensor.nse == 3


def test_the_buffers_of_coo_are_set_one_after_the_other() -> None:
    x = ours.coo_array(np.eye(3))
    x.data = np.array([1.0, 2, 3, 4])
    x.row = np.array([0, 1, 2, 0])
    x.col = np.array([0, 1, 2, 2])
    np.testing.assert_array_equal(x.toarray(), [[1, 0, 4], [0, 2, 0], [0, 0, 3]])
    y = ours.csr_array(np.eye(3))
    y.data = np.array([1.0, 2])
    with pytest.raises(ow.InvariantError):
        y.sum()
    y.indices, y.indptr = np.array([2, 0]), np.array([0, 1, 1, 2])
    np.testing.assert_array_equal(y.toarray(), [[0, 0, 1], [0, 0, 0], [2, 0, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_an_array_is_no_call_that_reads(kind: str) -> None:
    """A method that was forwarded as one that reads would change a copy."""
    forwarded = {name for name in CHANGES & set(dir(getattr(theirs, kind))) if not hasattr(getattr(ours, kind), name)}
    assert forwarded <= {"__setstate__"}


@pytest.mark.parametrize("kind", ["dok_array", "dok_matrix"])
def test_a_dictionary_of_elements(kind: str) -> None:
    make = getattr(ours, kind)
    x = make.fromkeys([(0, 2), (1, 0), (2, 1)], 5)
    assert type(x) is make
    tensor = x.tensor
    for write in (
        lambda d: d.pop((0, 2)), lambda d: d.update({(2, 2): 7}), lambda d: d.setdefault((0, 0), 3), lambda d: d.popitem(),
        lambda d: d.__delitem__((1, 0)), lambda d: d.update({(0, 1): 9}), lambda d: d.setdefault((2, 1), 9),
    ):  # fmt: skip
        want = dict(x.items())
        found = write(x)
        other = write(want)
        assert (found, dict(x.items())) == (other, want)
        assert x.tensor.nse == len(want) == len(x)
        assert all(x[key] == value and key in x for key, value in want.items())
    assert tensor.nse == 3
    if kind == "dok_array":
        for refused in (reversed, lambda d: d | {}, lambda d: {} | d, lambda d: operator.ior(d, {})):
            with pytest.raises(TypeError):
                refused(x)
    else:
        assert list(reversed(x)) == list(reversed(dict(x.items())))
        assert x | {(2, 2): 1} == {**dict(x.items()), (2, 2): 1} == x | make.fromkeys([(2, 2)], 1)
        x |= {(2, 2): 1}
        assert x.toarray()[2, 2] == 1
    x.clear()
    assert not x.toarray().any()


def test_a_matrix_takes_its_shape_in_place() -> None:
    for kind in KINDS[1::2]:
        x = getattr(ours, kind)(np.arange(6.0).reshape(2, 3))
        x.set_shape((3, 2))
        np.testing.assert_array_equal(x.toarray(), np.arange(6.0).reshape(3, 2))
        np.testing.assert_array_equal(x.tensor.to_numpy(), np.arange(6.0).reshape(3, 2))
