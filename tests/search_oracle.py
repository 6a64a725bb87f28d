"""A case of the search and its judgement: the same value as NumPy, or the same kind of error, and a valid result."""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from search_routes import Want, is_torch, name_of

import openwork as ow
from openwork.storage.exact import check_indices

__all__ = ["Case", "Failed", "Masked", "compare", "is_raised", "outcome", "run", "valid"]

Array = np.ndarray[Any, Any]
SIGNS = False
"""Whether zeros that are only moved have to keep their signs (`--signs`)."""


class Failed(Exception):
    """A difference; its text says which."""


@dataclass
class Masked:
    """What NumPy makes of a masked tensor: data, and where it is specified."""

    data: Any
    bits: Any


@dataclass
class Case:
    """What is called, on what, and what NumPy makes of it; `close` where sums may be in another order."""

    label: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    close: bool = False
    inputs: list[Any] = field(default_factory=list)
    dimensions: tuple[str, ...] = ()
    """What was drawn, for the table: "buffers: torch", "spelling: method"."""
    library: str | None = None
    """Whose buffers the result has."""
    signs: bool = False
    """Whether values are only moved, so that zeros keep their signs: those of formats without duplicates, whose sums
    begin at +0.0."""

    def __str__(self) -> str:
        return self.label + "".join(f"\n    {_shown(x)}" for x in self.inputs)


def _shown(x: Any) -> str:
    if isinstance(x, ow.Tensor):
        return f"{x.format} {x.shape} {x.dtype} fill {x.fill_value!r}"
    return repr(x)[:400]


OWN = (ow.FormatError, ow.ShapeError, ow.DTypeError, ow.UnsupportedError)


def outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call(), None
    except (Failed, TimeoutError):
        raise
    except Exception as error:
        return None, error


def valid(t: Any) -> None:
    """The result keeps all invariants, and its buffers make the same tensor again."""
    if not isinstance(t, ow.Tensor):
        return
    check_indices(t._storage)
    n = t.format.nlevels
    pos, crd = ({k: b for k in range(n) if (b := get(k)) is not None} for get in (t.pos, t.crd))
    ow.assemble(t.format, t.shape, pos=pos, crd=crd, values=t.values, fill_value=t.fill_value)


def run(case: Case) -> str | None:
    """What differs, or None."""
    want, refused = outcome(case.theirs)
    got, error = outcome(case.ours)
    if error is not None:
        if _is_bare(error) and (refused is None or not isinstance(error, ValueError)):
            return f"bare {type(error).__name__}: {_line(error)}"
        if isinstance(error, ow.InvariantError) and str(error).startswith("extent "):
            return None  # a shape that was asked for
        if isinstance(error, ow.InvariantError | ow.CompilerBug | AssertionError):
            return f"{type(error).__name__}: {_line(error)}"
        if refused is None and not isinstance(error, (*OWN, TypeError, ZeroDivisionError)):
            return f"{type(error).__name__}, NumPy has a value: {_line(error)}"
        return None
    if refused is not None and str(refused).endswith(("no identity", "an empty sequence")) and 0 in got.shape:
        return None  # NumPy asks for an identity even where there is nothing to be reduced
    if isinstance(refused, OverflowError):
        return None  # NumPy's integers end at 64 bits, those of an argument here do not
    if refused is not None:
        return f"a value, NumPy has {type(refused).__name__}: {refused}"
    for t in got if isinstance(got, tuple) else (got,):
        _, error = outcome(lambda t=t: valid(t))
        if error is not None:
            return f"invalid: {type(error).__name__}: {_line(error)}"
    for t in got if isinstance(got, tuple) else (got,):
        if case.library is not None and hasattr(t, "dtype") and is_torch(t) != (case.library == "torch"):
            return f"over {'torch' if is_torch(t) else 'NumPy'}'s buffers, expected {case.library}'s: {t!r}"[:300]
    tensors = [t for t in (*case.inputs, *(got if isinstance(got, tuple) else (got,))) if isinstance(t, ow.Tensor)]
    return compare(got, want, case.close, case.signs and all(t.format.is_unique for t in tensors))


def compare(got: Any, want: Any, close: bool, signs: bool) -> str | None:
    if isinstance(want, Want):
        if (found := name_of(got)) != want.dtype:
            return f"dtype {found}, expected {want.dtype}"
        want, close = want.array, close or want.dtype == "bfloat16"
    elif isinstance(want, Masked):
        return _compare_masked(got, want)
    elif isinstance(want, tuple):
        pairs = zip(got, want, strict=True)
        return (
            next((m for g, w in pairs if (m := compare(g, w, close, signs))), None)
            if len(got) == len(want)
            else "another number of results"
        )
    if want is None:
        return None
    rough = name_of(got) == "bfloat16" if hasattr(got, "dtype") else False
    over_torch = is_torch(got)
    got, want = _dense(got), np.asarray(want)
    if over_torch and want.dtype == np.uint64 and got.dtype != np.uint64:
        want = want.astype(np.int64)  # in which torch sums what has no sign
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind and got.dtype.kind in "iu"):
        return f"dtype {got.dtype}, expected {want.dtype}"
    same = (
        _close(got, want, rough)
        if close and want.dtype.kind in "fc"
        else np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
    )
    if not same:
        return f"values {got.tolist()}, expected {want.tolist()}"
    if (
        signs
        and SIGNS
        and want.dtype.kind == "f"
        and not np.array_equal(np.signbit(got) & (got == 0), np.signbit(want) & (want == 0))
    ):
        return f"signs of zeros in {got.tolist()}, expected {want.tolist()}"
    return None


def _compare_masked(got: Any, want: Masked) -> str | None:
    """The same mask, and the same values where it is True; dtypes of one kind."""
    if not isinstance(got, ow.MaskedTensor):
        return f"no masked tensor: {got!r}"[:200]
    if tuple(got.shape) != np.shape(want.bits):
        return f"shape {tuple(got.shape)}, expected {np.shape(want.bits)}"
    found, data, bits = got.to_masked_array(), np.asarray(want.data), np.asarray(want.bits)
    mask = ~np.ma.getmaskarray(found)
    if not np.array_equal(mask, bits):
        return f"mask {mask.tolist()}, expected {bits.tolist()}"
    if int(got.nse) != int(bits.sum()):
        return f"nse {got.nse}, {int(bits.sum())} are specified"
    if found.dtype.kind != data.dtype.kind and not {found.dtype.kind, data.dtype.kind} <= set("iu"):
        return f"dtype {found.dtype}, expected {data.dtype}"
    mine, theirs = np.asarray(found.data)[bits], data[bits]
    floating = theirs.dtype.kind in "fc"
    same = _close(mine, theirs.astype(mine.dtype)) if floating else bool(np.array_equal(mine, theirs))
    return None if same else f"values {mine.tolist()}, expected {theirs.tolist()}"


def _dense(got: Any) -> Array:
    """A result as NumPy's array, bfloat16 as float32."""
    if hasattr(got, "dtype") and name_of(got) == "bfloat16":
        got = got.astype("float32") if isinstance(got, ow.Tensor) else got.float()
    if isinstance(got, torch.Tensor):
        got = got.detach().resolve_conj().numpy()
    return got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)


def _close(got: Array, want: Array, rough: bool = False) -> bool:
    """Equal up to rounding; of a complex number both parts, where both are finite, else whether it is NaN."""
    rtol = 2e-3 if rough else {2: 1e-2, 4: 2e-5, 8: 1e-12}[(got.real if got.dtype.kind == "c" else got).dtype.itemsize]
    with np.errstate(all="ignore"):
        if want.dtype.kind == "c":
            finite = np.isfinite(want)
            odd = bool(((np.isfinite(got) == finite) | (np.abs(want) > 1e150)).all())
            return odd and bool(np.allclose(got[finite], want[finite], rtol=100 * rtol, atol=rtol))
        return bool(np.allclose(got, want, rtol=10 * rtol, atol=rtol, equal_nan=True))


def _line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:300]


def _is_bare(error: BaseException) -> bool:
    """Whether nobody meant to raise it: it comes from a library, or out of an instruction that is no `raise`."""
    if isinstance(error, (*OWN, ow.InvariantError, ow.CompilerBug, ow.FileFormatError)):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and not isinstance(error, TypeError | IndexError) and not is_raised(last)


def is_raised(last: Any) -> bool:
    """Whether the last frame of a traceback is ours, and it ends there by a `raise`."""
    code = last.tb_frame.f_code
    return "openwork" in code.co_filename and dis.opname[code.co_code[last.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
