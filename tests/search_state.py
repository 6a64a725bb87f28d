"""Random cases of what is kept or changed: assignment, in-place methods, copies, pickles, files and other libraries' layouts."""

from __future__ import annotations

import copy
import io
import pickle
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from search_formats import array, laid
from search_oracle import Case, Failed
from search_routes import is_torch, name_of, onto_torch

import openwork as ow

__all__ = ["assignment", "exchange", "in_place", "key"]

Array = np.ndarray[Any, Any]


def key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """An index of any kind: slices, integers, lists, arrays, a mask of leading dimensions, None and an ellipsis."""
    parts: list[Any] = []
    dims, at = rng.randint(0, len(shape)), 0
    while at < dims:
        n, kind = shape[at], rng.random()
        if kind < 0.4:
            ends = [rng.choice((None, rng.randint(-n - 1, n + 1))) for _ in range(2)]
            parts.append(slice(*ends, rng.choice((None, 1, -1, -1, 2, -2, 3))))
        elif kind < 0.58:
            parts.append(rng.randint(-n, n - 1) if n and rng.random() < 0.95 else n)
        elif kind < 0.68:
            parts.append([rng.randint(-n, n - 1) for _ in range(rng.randint(1, 4))] if n else slice(None))
        elif kind < 0.76:
            rows = [[rng.randint(-n, max(n - 1, -n)) for _ in range(2)] for _ in range(rng.randint(1, 2))]
            parts.append(laid(rng, np.array(rows)) if n else slice(None))
        elif kind < 0.84:
            several = rng.randint(1, dims - at)
            sizes = shape[at : at + several]
            mask = np.array([rng.random() < 0.4 for _ in range(int(np.prod(sizes)))], bool).reshape(sizes)
            parts.append(laid(rng, mask))
            at += several - 1
        elif kind < 0.92:
            parts.append(slice(None, None, -1))
        else:
            parts += [None, slice(None)]
        at += 1
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), Ellipsis)
    return tuple(parts) if len(parts) != 1 or rng.random() < 0.5 else parts[0]


def assignment(d: Any) -> Case:
    """`A[key] = v` and `A.at[key].set, add, mul, min, max (v)`, of numbers, arrays and tensors that broadcast."""
    rng = d.rng
    t, a = d.operand()
    k = key(rng, a.shape)
    kind = rng.choice(("=", "=", "=", "set", "add", "mul", "min", "max"))
    try:
        selected = a[k]
    except (IndexError, ValueError):
        selected = np.zeros(1, a.dtype)
    shape = tuple(1 if rng.random() < 0.2 else n for n in selected.shape[rng.choice((0, 0, 0, 1)) :])
    dtype = name_of(t)
    if rng.random() < 0.35:
        v: Any = array(rng, (), a.dtype.name, d.tame).item()
        u = v
    else:
        v = array(rng, shape, a.dtype.name, d.tame)
        u = v
        if rng.random() < 0.5:
            u = ow.asarray(v, format="coo" if v.ndim else None)
            u = onto_torch(u, dtype) if is_torch(t) else u
        elif is_torch(t):
            u = laid(rng, torch.from_numpy(v).to(getattr(torch, dtype)))
        else:
            u = laid(rng, v)
    if dtype == "bfloat16":
        v = torch.from_numpy(np.array(v, a.dtype)).bfloat16().float().numpy()
    d.inputs += [np.asarray(v).tolist(), type(u).__name__]
    d.dimensions.append("spelling: A[key] = v" if kind == "=" else "spelling: A.at[key]")
    before = t.clone()

    def ours() -> Any:
        if kind != "=":
            made = getattr(t.at[k], kind)(u)
            if not np.array_equal(_array(t), a, equal_nan=a.dtype.kind in "fc"):
                raise Failed("the tensor itself was changed")
            return made
        before[k] = u
        if before.format != t.format:
            raise Failed(f"format {before.format}")
        return before

    def theirs() -> Array:
        b = a.copy()
        if kind in ("=", "set"):
            b[k] = v
        else:
            ufunc: Any = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[kind]
            ufunc.at(b, k, np.asarray(v, b.dtype))
        return b

    return d.case(f"[{k}] {kind}", ours, theirs, close=kind in ("add", "mul"))


def _array(t: Any) -> Array:
    return np.asarray((t.astype("float32") if name_of(t) == "bfloat16" else t).to_numpy())


def in_place(d: Any) -> Case:
    """In-place methods, the copy made before unchanged: zero_, copy_, torch's add_, mul_, and NumPy's `out=`."""
    rng = d.rng
    d.tame = True
    t, a = d.operand(filled=False)
    u, b = d.operand(a.shape, a.dtype.name, filled=False)
    name = rng.choice(("zero_", "copy_", "add_", "mul_", "sub_", "eliminate_zeros", "sum_duplicates", "abs_", "neg_"))
    d.dimensions.append(f"spelling: {name}")
    makes: dict[str, Callable[[], Array]] = {
        "zero_": lambda: np.zeros_like(a), "copy_": lambda: b.astype(a.dtype), "add_": lambda: a + b, "mul_": lambda: a * b,
        "sub_": lambda: a - b, "eliminate_zeros": lambda: a, "sum_duplicates": lambda: a, "abs_": lambda: np.abs(a).astype(a.dtype),
        "neg_": lambda: -a,
    }  # fmt: skip
    if name[:-1] in ("abs", "neg") and not is_torch(t):
        name = "zero_"

    def ours() -> Any:
        changed, view = t.clone(), None
        kept = changed.clone()
        view = changed.T
        getattr(changed, name)(*([u] if name in ("copy_", "add_", "mul_", "sub_") else []))
        if not np.array_equal(_array(kept), a):
            raise Failed("a copy was changed")
        if not np.array_equal(_array(view).T, a) and not np.array_equal(_array(view).T, _array(changed)):
            raise Failed("the transpose has neither the old elements nor the new ones")
        if changed.format != t.format and name != "sum_duplicates":
            raise Failed(f"format {changed.format}")
        return changed

    return d.case(name, ours, makes[name], library="torch" if is_torch(t) else "numpy")


def _saved(t: Any) -> Any:
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def _file(suffix: str) -> Callable[[Any], Any]:
    def through(t: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"a{suffix}")
            ow.write(path, t)
            found = ow.read(path)
            return found.clone() if suffix == ".ow" else found

    return through


def _known_to_numpy(t: Any) -> Any:
    return t.astype("float32") if name_of(t) == "bfloat16" else t


EXCHANGES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "pickle": (lambda t: pickle.loads(pickle.dumps(t)), True), "deepcopy": (copy.deepcopy, True), "copy": (copy.copy, True),
    "torch.save": (_saved, True), ".npz": (_file(".npz"), True), ".ow": (_file(".ow"), True), ".bsp.h5": (_file(".bsp.h5"), False),
    ".mtx": (_file(".mtx"), False), ".tns": (_file(".tns"), False), ".mtx.gz": (_file(".mtx.gz"), False),
    ".parquet": (_file(".parquet"), False), ".petsc": (_file(".petsc"), False), ".bsp.zarr": (_file(".bsp.zarr"), False),
    ".rb": (_file(".rb"), False),
    "to_scipy": (lambda t: ow.asarray(t.to_scipy()), False), "to_torch": (lambda t: ow.asarray(t.to_torch()), False),
    "dlpack": (lambda t: ow.asarray(np.from_dlpack(_known_to_numpy(t).asformat("dense"))), False),
    "asarray": (lambda t: ow.asarray(np.asarray(t.asformat("dense"))), False),
    "onto the other library": (lambda t: ow.asarray(t, like=np if is_torch(t) else torch), True),
    "there and back": (lambda t: ow.asarray(ow.asarray(t, like=np if is_torch(t) else torch), like=torch if is_torch(t) else np), True),
    "assemble": (lambda t: ow.assemble(t.format, t.shape, pos=_levels(t, t.pos), crd=_levels(t, t.crd), values=t.values, fill_value=t.fill_value), True),
    "with_values": (lambda t: t.with_values(t.values), True), "clone": (lambda t: t.clone(), True),
    "transposed twice": (lambda t: t.T.T, True), "coalesce": (lambda t: t.asformat("coo").coalesce(), False),
    "format's text": (lambda t: t.asformat(ow.format(str(t.format))), True),
    "tocsr": (lambda t: ow.asarray(t.tocsr()), False), "tobsr": (lambda t: ow.asarray(t.tobsr()), False), "tocoo": (lambda t: ow.asarray(t.tocoo()), False),
    "prune": (lambda t: t.prune(), False), "iso": (lambda t: ow.where(ow.pattern(t), t, t.fill_value), False),
}  # fmt: skip


NARROW = (".rb", ".petsc", "dlpack", "asarray", ".parquet")
"""What has not every dtype."""


def _levels(t: Any, get: Callable[[int], Any]) -> dict[int, Any]:
    return {k: b for k in range(t.format.nlevels) if (b := get(k)) is not None}


def exchange(d: Any) -> Case:
    """There and back: copies, pickles, files, SciPy's and torch's layouts."""
    rng = d.rng
    name = rng.choice(tuple(EXCHANGES))
    t, a = d.operand()
    through, same = EXCHANGES[name]
    d.dimensions.append(f"spelling: {name}")

    def ours() -> Any:
        found = through(t)
        if name in NARROW:
            found = found.astype(t.dtype)
        if same and found.format != t.format:
            raise Failed(f"comes back as {found.format}")
        if same and not _same(found.fill_value, t.fill_value):
            raise Failed(f"fill value {found.fill_value}")
        if not np.array_equal(_array(t), a, equal_nan=a.dtype.kind in "fc"):
            raise Failed("the tensor itself was changed")
        if name_of(found) != name_of(t) and name not in NARROW:
            raise Failed(f"dtype {name_of(found)}")
        return found

    return d.case(name, ours, lambda: a, library=None, signs=name not in (".petsc", ".rb", "iso"))


def _same(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))
