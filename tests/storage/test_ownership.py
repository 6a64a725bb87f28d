"""What shares memory with what, what in-place forms write to, and buffers that others change: docs/ownership.md."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import openwork as ow
from openwork.errors import ExportError
from openwork.storage.storage import Storage

D = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])
PARTS = [0, 2, 3, 5], [0, 2, 1, 0, 2], [1.0, 2.0, 3.0, 4.0, 5.0]


def over_numpy() -> tuple[ow.Tensor, list[Any]]:
    crow, col = (np.array(b) for b in PARTS[:2])
    parts = [crow, col, np.array(PARTS[2])]
    return ow.sparse_csr_tensor(*parts, (3, 3)), parts


def over_torch() -> tuple[ow.Tensor, list[Any]]:
    torch = pytest.importorskip("torch")
    parts = [torch.tensor(b) for b in PARTS]
    return ow.sparse_csr_tensor(*parts, (3, 3), check_invariants=False), parts


BOTH = pytest.mark.parametrize("make", [over_numpy, over_torch])


def like(x: Any, t: ow.Tensor) -> Any:
    """A list as an array of the tensor's library."""
    if isinstance(t.values, np.ndarray):
        return np.array(x)
    import torch

    return torch.tensor(x)


# -- in-place forms ------------------------------------------------------------------------------------------------


def _set(A: ow.Tensor) -> None:
    A[0, 0] = 8.0


def _by(operation: str, other: Any) -> Any:
    def act(A: ow.Tensor) -> None:
        names = {"A": A, "other": other(A) if callable(other) else other}
        exec(f"A {operation} other", names)
        assert names["A"] is A

    return act


KEEPING = {
    "*=": (_by("*=", 3), D * 3),
    "/=": (_by("/=", 2), D / 2),
    "**=": (_by("**=", 2), D**2),
    "*= of the same structure": (_by("*=", lambda A: A.clone()), D * D),
    "+= of the same structure": (_by("+=", lambda A: A.clone()), D + D),
    "+= itself": (_by("+=", lambda A: A), D + D),
    "-= of a part": (_by("-=", lambda A: A * 0.5), D / 2),
    "*= of a dense array": (_by("*=", lambda A: like([[2.0] * 3] * 3, A)), D * 2),
    "a stored element": (_set, np.where(np.eye(3) * D == 1, 8, D)),
    "mul_": (lambda A: A.mul_(3), D * 3),
    "add_": (lambda A: A.add_(A), D * 2),
    "copy_": (lambda A: A.copy_(A * 4), D * 4),
    "zero_": (lambda A: A.zero_(), D * 0),
    "@=": (_by("@=", lambda A: A.clone()), D @ D),
}


@BOTH
@pytest.mark.parametrize("name", KEEPING)
def test_where_the_structure_stays_whoever_shares_the_values_sees_it(make, name) -> None:
    A, (_, _, values) = make()
    T, kept = A.T, A.values
    act, wanted = KEEPING[name]
    act(A)
    np.testing.assert_array_equal(A.to_numpy(), wanted)
    np.testing.assert_array_equal(T.to_numpy(), wanted.T)
    assert A.values is kept or np.shares_memory(A.values, kept)
    np.testing.assert_array_equal(np.asarray(values), np.asarray(A.values))


CHANGING = {
    "+= 1": (_by("+=", 1), D + 1),
    "+= of other elements": (
        _by("+=", lambda A: ow.asarray(like([[0.0, 1, 0]] * 3, A), format="csr")),
        D + np.array([0, 1, 0]),
    ),
    "a new element": (lambda A: A.__setitem__((0, 1), 6.0), D + np.array([[0, 6, 0], [0, 0, 0], [0, 0, 0]])),
    "an element set to zero": (lambda A: A.__setitem__((1, 1), 0.0), D * [[1, 1, 1], [0, 0, 0], [1, 1, 1]]),
    "@=": (_by("@=", lambda A: ow.asarray(like([[0.0, 1, 0]] * 3, A), format="csr")), D @ ([[0, 1, 0]] * 3)),
}


@BOTH
@pytest.mark.parametrize("name", CHANGING)
def test_where_the_structure_changes_the_tensor_takes_new_buffers(make, name) -> None:
    A, (_, _, values) = make()
    T, format = A.T, A.format
    act, wanted = CHANGING[name]
    act(A)
    np.testing.assert_array_equal(A.to_numpy(), wanted)
    assert A.format == format
    np.testing.assert_array_equal(T.to_numpy(), D.T)
    assert np.asarray(values).tolist() == PARTS[2]


def test_scipy_sees_what_is_written() -> None:
    S = scipy.sparse.csr_array(D)
    A = ow.asarray(S)
    A *= 3
    assert S.data.tolist() == [3, 6, 9, 12, 15]
    A.mul_(2)
    assert S.data.tolist() == [6, 12, 18, 24, 30]
    A.zero_()
    assert S.data.tolist() == [0] * 5


_FORMS = (
    "__iadd__",
    "__isub__",
    "__imul__",
    "__ifloordiv__",
    "__imod__",
    "__ipow__",
    "__ior__",
    "add_",
    "sub_",
    "mul_",
)


@pytest.mark.thin(9)
@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("target", ["uint8", "uint32", "int8", "int16"])
@pytest.mark.parametrize("source", ["int8", "int64", "uint16"])
@pytest.mark.parametrize("make", [ow.asarray, ow.masked.masked_tensor], ids=["plain", "masked"])
def test_integers_change_their_signs_in_place_as_in_the_library(form: str, target: str, source: str, make: Any) -> None:
    a, b = np.array([[3, 0], [1, 5]], target), np.array([[2, 1], [1, 2]], source)
    t = ow.asarray(a.copy(), format="csr")
    t = t if make is ow.asarray else make(t, ow.asarray(a > 0, format="csr"))
    if not hasattr(t, form):
        pytest.skip(f"masked tensors have no {form}")
    operator = form if form.startswith("__") else f"__i{form[:-1]}__"
    try:
        expected = getattr(a.copy(), operator)(b)
    except np._core._exceptions.UFuncTypeError:
        with pytest.raises(ow.DTypeError, match=f"the result has dtype .*, the tensor {target}"):
            getattr(t, form)(b)
        return
    found = getattr(t, form)(b)
    assert found.dtype == target
    np.testing.assert_array_equal(
        found.to_numpy(0)[a > 0] if make is not ow.asarray else found.to_numpy(),
        expected[a > 0] if make is not ow.asarray else expected,
    )


def test_a_kind_that_the_dtype_cannot_hold_is_refused() -> None:
    A = ow.asarray(D.astype(int), format="csr")
    with pytest.raises(ow.DTypeError, match=r"\*=: the result has dtype float64, the tensor int64"):
        A *= 0.5
    with pytest.raises(ow.ShapeError, match=r"\+=: the result has shape \(2, 3, 3\)"):
        A += np.ones((2, 3, 3), int)
    np.testing.assert_array_equal(A.to_numpy(), D)


IN_PLACE = {
    "*=": _by("*=", 2), "+=": _by("+=", 1), "@=": _by("@=", lambda A: A.clone()), "zero_": lambda A: A.zero_(), "mul_": lambda A: A.mul_(2),
    "set": _set, "copy_": lambda A: A.copy_(A.clone()), "new element": lambda A: A.__setitem__((0, 1), 6.0),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("format", ["csr", "dense", "coo"])
def test_read_only_values_are_refused(name, format) -> None:
    made = ow.asarray(D, format=format)._storage
    values = made.values.copy()
    values.flags.writeable = False
    index = {k: {at: b for at, b in enumerate(getattr(made, k)) if b is not None} for k in ("pos", "crd")}
    A = ow.assemble(made.format, (3, 3), values=values, **index)
    with pytest.raises(ow.ReadOnlyError, match=r"read-only"):
        IN_PLACE[name](A)
    np.testing.assert_array_equal(A.to_numpy(), D)
    A.clone().zero_()


def test_masked_tensors_follow_the_rule() -> None:
    values = D.copy()
    values.flags.writeable = False
    m = ow.masked_tensor(ow.asarray(D, format="csr"), ow.asarray(D != 0, format="csr"))
    kept = m.values
    m *= 2
    assert np.shares_memory(m.values, kept)
    n = +m
    n *= 2
    np.testing.assert_array_equal(m.filled(0).to_numpy(), D * 2)
    m._tensor._storage.values.flags.writeable = False
    with pytest.raises(ow.ReadOnlyError):
        m += 1


def test_leaves_and_graphs() -> None:
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(PARTS[2], requires_grad=True)
    A = ow.sparse_csr_tensor(torch.tensor(PARTS[0]), torch.tensor(PARTS[1]), leaf, (3, 3))
    for act in IN_PLACE.values():
        with pytest.raises(ow.UnsupportedError, match=r"leaf|no gradient"):
            act(A)
    C = A * 1.0
    C *= C
    C += 2 * A
    C.values.sum().backward()
    assert leaf.grad.tolist() == [2 * x + 2 for x in PARTS[2]]
    with torch.no_grad():
        A *= 2
    assert A.values is leaf
    assert leaf.tolist() == [2 * x for x in PARTS[2]]


FUNCTIONS = {
    "+A": lambda A: +A, "positive": ow.positive, "clip": ow.clip, "tile": lambda A: ow.tile(A, (1, 1)),
    "roll": lambda A: ow.roll(A, 0), "prune": ow.prune, "set nothing": lambda A: A.at[0:0].set(1),
    "columns": lambda A: A[:, 1:], "round": ow.round, "real": ow.real, "clone": lambda A: A.clone(),
    "copy": lambda A: ow.asarray(A, copy=True), "deepcopy": copy.deepcopy, "astype": lambda A: A.astype(A.dtype),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("format", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [int, float])
def test_results_of_functions_have_values_of_their_own(name, format, dtype) -> None:
    A = ow.asarray(D.astype(dtype), format=format)
    B = FUNCTIONS[name](A)
    B += B
    np.testing.assert_array_equal(A.to_numpy(), D)


SHARED: dict[str, tuple[Any, bool, bool | None]] = {
    "T": (lambda A: A.T, True, True),
    "mT": (lambda A: A.mT, True, True),
    "permute_dims": (lambda A: ow.permute_dims(A, (1, 0)), True, True),
    "expand_dims": (lambda A: ow.expand_dims(A, axis=0), True, True),
    "squeeze": (lambda A: ow.squeeze(A[None], axis=0), True, True),
    "A[:]": (lambda A: A[:], True, True),
    "A[None]": (lambda A: A[None], True, True),
    "copy.copy": (copy.copy, True, True),
    "detach": (lambda A: A.detach(), True, True),
    "A[a:b]": (lambda A: A[1:3], True, None),
    "A[k]": (lambda A: A[2], True, None),
    "columns": (lambda A: A[:, 1:], False, None),
    "strided rows": (lambda A: A[::2], False, None),
    "a list of rows": (lambda A: A[[0, 2]], False, None),
    "at": (lambda A: A.at[0, :].set(7), False, False),
    "at a stored element": (lambda A: A.at[0, 0].set(7), False, True),
    "at one that is not stored": (lambda A: A.at[0, 1].set(7), False, False),
    "reshape": (lambda A: A.reshape(9), False, False),
    "reshape to its shape": (lambda A: A.reshape(3, 3), True, True),
    "asformat of its own": (lambda A: A.asformat("csr"), True, True),
    "asformat of fewer promises": (lambda A: A.asformat("csr(unordered)"), True, True),
    "asformat coo": (lambda A: A.asformat("coo"), True, True),
    "coalesce": (lambda A: A.coalesce(), True, True),
    "asformat csc": (lambda A: A.asformat("csc"), False, False),
    "asformat copy": (lambda A: A.asformat("csr", copy=True), False, False),
    "astype": (lambda A: A.astype(A.dtype), False, True),
    "astype copy=False": (lambda A: A.astype(A.dtype, copy=False), True, True),
    "iso": (lambda A: A.iso(2), False, True),
    "clone": (lambda A: A.clone(), False, False),
    "deepcopy": (copy.deepcopy, False, False),
    "asarray copy": (lambda A: ow.asarray(A, copy=True), False, False),
    "sum": (lambda A: A + A, False, True),
    "positive": (lambda A: +A, False, True),
    "sin": (ow.sin, False, True),
}
"""What `A` of CSR becomes; whether that shares values, and positions or coordinates (None: either), with `A`."""


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", SHARED)
def test_the_table_of_what_shares_memory(name: str) -> None:
    A = ow.asarray(scipy.sparse.csr_array(D))
    make, values, structure = SHARED[name]
    B = make(A)
    assert np.shares_memory(B.values, A.values) == values
    index = [[b for k in range(len(t.format.levels)) for b in (t.pos(k), t.crd(k)) if b is not None] for t in (A, B)]
    if structure is not None:
        assert any(np.shares_memory(a, b) for a in index[0] for b in index[1]) == structure


@pytest.mark.parametrize("format", ["csr", "coo", "dcsr", "ell(3)", "bitmap", "dense"])
def test_rows_of_formats_by_rows_share_values(format: str) -> None:
    A = ow.asarray(D, format=format)
    for view, shares in ((A[1:], True), (A[2], True), (A[:, 1:], False)):
        assert np.shares_memory(view.values, A.values) == shares
    if format != "dense":
        assert np.shares_memory(A.T[:, 1:].values, A.values)


def test_what_others_made_is_taken_over() -> None:
    for S in (
        scipy.sparse.csr_array(D),
        scipy.sparse.csc_array(D),
        scipy.sparse.coo_array(D),
        scipy.sparse.dia_array(D),
    ):
        A = ow.asarray(S, copy=False)
        assert np.shares_memory(A.values, S.data)
        assert np.shares_memory(A.to_scipy().data, S.data)
    assert np.shares_memory(ow.asarray(D).values, D)
    assert np.shares_memory(np.asarray(ow.asarray(D)), D)
    with pytest.raises(ValueError, match="cannot be taken over without a copy"):
        ow.asarray(D[:, ::2], copy=False)


# -- accessors -----------------------------------------------------------------------------------------------------


def accessors(A: ow.Tensor) -> list[Any]:
    C, X = A.asformat("csc"), A.asformat("coo")
    return [
        A.pos(1),
        A.crd(1),
        A.crow_indices(),
        A.col_indices(),
        C.ccol_indices(),
        C.row_indices(),
        X.indices(),
        X.crd(0),
    ]


def test_accessors_are_read_only_views() -> None:
    A, (crow, col, _) = over_numpy()
    for index in accessors(A):
        with pytest.raises(ValueError, match="read-only"):
            index[...] = 10**9
    assert np.shares_memory(A.crd(1), col)
    assert col.flags.writeable
    assert crow.flags.writeable
    with pytest.raises(ValueError, match="resize"):
        A.crd(1).resize(0, refcheck=False)


@pytest.mark.parametrize("name", ["pos", "crd", "crow_indices", "col_indices"])
def test_what_is_written_through_an_accessor_of_torch_buffers_is_noticed(name) -> None:
    A, _ = over_torch()
    x = like([1.0, 1.0, 1.0], A)
    assert (A @ x).tolist() == [3, 3, 9]
    index = getattr(A, name)(*((1,) if len(name) == 3 else ()))
    index[1] = 10**9
    for use in (
        lambda: A @ x,
        lambda: A + A,
        lambda: A.asformat("csc"),
        lambda: A[0],
        lambda: A.to_numpy(),
        lambda: str(A),
    ):
        with pytest.raises(
            ow.InvariantError, match=r"(?s)invariant 5\.[35].*\n  note: .* changed after the tensor was made"
        ):
            use()
    index[1] = 2
    assert (A @ x).tolist() == [3, 3, 9]


# -- buffers that change under a tensor ----------------------------------------------------------------------------


USES = {
    "product": lambda A, x: A @ x, "from the left": lambda A, x: x @ A, "merge": lambda A, x: A + A,
    "two": lambda A, x: A @ A, "convert": lambda A, x: A.asformat("coo"), "sum": lambda A, x: A.sum(0), "total": lambda A, x: A.sum(),
    "index": lambda A, x: A[1:], "text": lambda A, x: str(A), "scaled": lambda A, x: A * 2, "dense": lambda A, x: A.to_numpy(),
    "einsum": lambda A, x: ow.einsum("ij,j->i", A, x), "lazy": lambda A, x: ow.compute(ow.lazy(A) * 2),
}  # fmt: skip


def test_other_changes_to_an_array_object_are_its_own() -> None:
    A, (crow, col, values) = over_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crow.shape = (2, 2)
        col.dtype = np.int32
    values[...] = 1
    np.testing.assert_array_equal(A.to_numpy(), D != 0)


@pytest.mark.parametrize("use", USES)
def test_torch_memory_that_is_gone(use) -> None:
    for part in range(3):
        A, parts = over_torch()
        x = like([1.0, 1.0, 1.0], A)
        parts[part].untyped_storage().resize_(0)
        with pytest.raises(
            ow.InvariantError, match=r"(?s)was resized after the tensor was made.*invariant 3\.(8|9|10)"
        ):
            USES[use](A, x)


def test_torch_values_that_were_replaced() -> None:
    A, (_, _, values) = over_torch()
    T, x = A.T, like([1.0, 1.0, 1.0], A)
    assert (A @ x).tolist() == [3, 3, 9]
    values.data = like([2.0, 4.0, 6.0, 8.0, 10.0], A)
    assert (A @ x).tolist() == [6, 6, 18]
    assert (T @ x).tolist() == [10, 6, 14]
    values.data = values.data.double()
    assert A.dtype is values.dtype
    values.set_(like([1.0], A).double())
    for t in (A, T):
        with pytest.raises(ow.InvariantError, match=r"(?s)length of values.*\n.*expected: 5; got: 1.*invariant 3\.10"):
            t @ x.double()


def test_torch_indices_that_were_replaced_are_kept() -> None:
    A, (crow, col, _) = over_torch()
    col.set_(like([7], A))
    crow.resize_(1)
    np.testing.assert_array_equal(A.to_numpy(), D)


def test_torch_indices_that_were_written_to_are_checked_again() -> None:
    A, (_, col, _) = over_torch()
    col[2] = 0
    np.testing.assert_array_equal(A.to_numpy(), [[1, 0, 2], [3, 0, 0], [4, 0, 5]])
    col[:2] = 1
    with pytest.raises(ow.InvariantError, match=r"(?s).*invariant 5\.6"):
        A.sum()


def test_check_finds_what_cannot_be_noticed() -> None:
    A, (_, col, _) = over_numpy()
    assert A.check() is A
    col[0] = 99
    with pytest.raises(ow.InvariantError, match=r"5\.5"):
        A.check()


# -- copies and pickles --------------------------------------------------------------------------------------------


def broken(A: ow.Tensor, **changes: Any) -> ow.Tensor:
    """A tensor that breaks invariants, made without the checks."""
    names = ("shape", "format", "scalar", "fill_value", "pos", "crd", "values")
    parts = {n: getattr(A._storage, n) for n in names} | changes
    return ow.Tensor._from_storage(Storage(**parts))


BREAKS = {
    "crd": lambda A: {"crd": (None, A.crd(1) * 0 + 7)},
    "pos": lambda A: {"pos": (None, A.pos(1) * 0)},
    "order": lambda A: {"crd": (None, A.crd(1) * 0)},
    "values": lambda A: {"values": A.values[:-1]},
    "float": lambda A: {"crd": (None, A.crd(1) * 0.5)},
    "dtype": lambda A: {"scalar": "i64"},
    "shape": lambda A: {"shape": (3, 3, 3)},
    "none": lambda A: {"crd": (None, None)},
    "fill": lambda A: {"fill_value": "abc"},
}
COPIES = [copy.copy, copy.deepcopy, lambda A: pickle.loads(pickle.dumps(A))]


@pytest.mark.thin(3)
@BOTH
@pytest.mark.parametrize("how", range(3))
@pytest.mark.parametrize("name", BREAKS)
def test_copies_are_checked(make, how, name) -> None:
    A, _ = make()
    B = COPIES[how](A)
    np.testing.assert_array_equal(B.to_numpy(), D)
    with pytest.raises(ow.InvariantError):
        COPIES[how](broken(A, **BREAKS[name](A)))


@pytest.mark.parametrize(
    ("at", "part"), [(0, [3, 3]), (0, (3, 3.0)), (1, "csr"), (2, "q9"), (2, []), (4, None), (6, [1.0])]
)
def test_parts_of_pickles_are_of_the_right_kind(at, part) -> None:
    make, parts = over_numpy()[0]._storage.__reduce__()
    make(*parts)
    with pytest.raises(ow.InvariantError, match="unpickling"):
        make(*parts[:at], part, *parts[at + 1 :])


def test_pickled_bytes_that_were_changed() -> None:
    A, (_, col, _) = over_numpy()
    text = pickle.dumps(A)
    for old, new in ((col, col + 1), (np.array(PARTS[0]), np.array([0, 3, 3, 5]))):
        assert text.count(old.tobytes()) == 1
        with pytest.raises(ow.InvariantError):
            pickle.loads(text.replace(old.tobytes(), new.tobytes()))


def test_formats_of_pickles_keep_their_rules() -> None:
    f = ow.format("ell(3)")
    assert pickle.loads(pickle.dumps(f)) == copy.deepcopy(f) == f
    (_, (dims, levels)) = f.__reduce__()
    make = f.__reduce__()[0]
    last = levels[-1].format.__reduce__()
    for arguments in ((0,), (-1,), ("x",), ()):
        with pytest.raises(ow.FormatError):
            last[0](last[1][0], arguments, True, True)
    for parts in ((("i", "i"), levels), (dims, (1, 2)), (("i",), levels), (dims, levels[:1]), (None, None)):
        with pytest.raises(ow.FormatError):
            make(*parts)
    level = levels[-1].__reduce__()
    with pytest.raises(ow.FormatError):
        level[0]("i", levels[-1].format)


def test_masked_tensors_of_pickles() -> None:
    m = ow.masked_tensor(D, D != 0)
    make, (tensor, _) = m.__reduce__()
    for parts in ((1, False), (tensor, True), (tensor, None)):
        with pytest.raises(ow.InvariantError):
            make(*parts)


def test_torch_load() -> None:
    torch = pytest.importorskip("torch")

    A, _ = over_torch()
    for t in (A, broken(A, **BREAKS["crd"](A)), broken(A, **BREAKS["pos"](A))):
        file = io.BytesIO()
        torch.save(t, file)
        for weights_only in (True, False):
            file.seek(0)
            if t is A:
                np.testing.assert_array_equal(torch.load(file, weights_only=weights_only).to_numpy(), D)
                continue
            with pytest.raises((ow.InvariantError, pickle.UnpicklingError), match=r"5\.\d"):
                torch.load(file, weights_only=weights_only)


def test_torch_memory_of_the_same_size_is_other_memory() -> None:
    pytest.importorskip("torch")
    for part in range(2):
        A, _ = over_torch()
        s = A._storage
        assert s.holds()
        x = (s.values, s.crd[1])[part]
        x.data = x.data.clone()
        assert not s.holds()


# -- changes after many questions ----------------------------------------------------------------------------------


def asked_often(A: ow.Tensor) -> ow.Tensor:
    """The tensor once it was asked a hundred times whether buffers are as they were."""
    A @ like([1.0, 1.0, 1.0], A)
    for _ in range(99):
        assert A.nse == 5
    return A


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
def test_an_array_that_is_another_view_of_its_memory_is_no_change() -> None:
    A, parts = over_numpy()
    asked_often(A)
    for x in parts:
        x.shape = (1, len(x))
    for _ in range(9):
        np.testing.assert_array_equal(A.to_dense(), D)


def test_changes_of_torch_buffers_are_noticed_after_many_questions() -> None:
    torch = pytest.importorskip("torch")
    A, (_, col, _) = over_torch()
    asked_often(A)
    col[0] = 1  # another matrix
    np.testing.assert_array_equal(A.to_dense(), [[0, 1, 2], [0, 3, 0], [4, 0, 5]])
    asked_often(A)
    col[0] = 7
    with pytest.raises(ow.InvariantError, match=r"crd\[1\]"):
        A.to_dense()
    changes = {
        "resize_": lambda x: x.resize_(2),
        "storage": lambda x: x.untyped_storage().resize_(8),
        "data": lambda x: setattr(x, "data", torch.ones(2, dtype=torch.float64)),
    }
    for change in changes.values():
        B, (_, _, values) = over_torch()
        asked_often(B)
        change(values if B.values is values else B.values)
        with pytest.raises(ow.InvariantError):
            B.to_dense()
    C, (_, _, values) = over_torch()
    asked_often(C)
    C.values.data = 2 * values
    np.testing.assert_array_equal(C.to_dense(), 2 * D)
    asked_often(C)
    C.values.data = values.float()
    assert C.dtype == torch.float32


def test_values_of_torch_that_get_another_dimension_are_refused() -> None:
    """Also after calls that compare words of memory: a slice of such values has other elements, and was read beyond."""
    torch = pytest.importorskip("torch")
    for change in ("unsqueeze", "resize", "set", "data"):
        for calls in (0, 150):
            values = torch.arange(1.0, 7)
            t = ow.sparse_csr_tensor(torch.arange(7), torch.arange(6), values, (6, 6))
            for _ in range(calls):
                t.sum()
            if change == "unsqueeze":
                values.unsqueeze_(0)
            elif change == "resize":
                values.resize_(2, 3)
            elif change == "set":
                values.set_(torch.ones(1, 6))
            else:
                values.data = torch.ones(6, 1)
            for call in (lambda t=t: t[1:4].to_dense(), lambda t=t: t @ torch.ones(6)):
                with pytest.raises(ow.InvariantError, match="one dimension"):
                    call()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writ")
def test_read_only_arrays_and_files_survive_what_torch_writes(tmp_path: Path) -> None:
    """torch heeds no flag of NumPy's: DLPack gives it a copy, and pages of files are copied when they are written to."""
    torch = pytest.importorskip("torch")
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    t = ow.asarray(frozen)
    torch.from_dlpack(t)[0] = 7
    assert np.shares_memory(np.asarray(t), frozen)
    assert frozen[0] == 0
    with pytest.raises(ExportError, match="read-only"):
        np.from_dlpack(t, copy=False)
    A = ow.asarray(np.eye(3), format="csr")
    for name in ("a.ow", "a.npz"):
        path = tmp_path / name
        ow.write(path, A, **({"compress": False} if name.endswith("npz") else {}))
        before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
        opened = ow.open(path)
        for taken in (torch.from_numpy, torch.from_dlpack):
            taken(opened.values)[0] = 7
            taken(opened.crd(1))[0] = 0
        assert not opened.values.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            opened.values.flags.writeable = True
        assert before == {f: f.read_bytes() for f in before}
        assert np.array_equal(ow.open(path).to_numpy(), np.eye(3))
