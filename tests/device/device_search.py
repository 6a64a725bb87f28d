"""Random calls on a device beside the host: formats of the matrix, dtypes, long, empty and awkward rows, keys, semirings.

python tests/device/device_search.py --device opencl --count 500 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
from device_cases import Case, cases  # noqa: E402
from matrix import FORMATS, tensor  # noqa: E402

import openwork as ow  # noqa: E402
from openwork.errors import UnsupportedError  # noqa: E402

DTYPES = (
    "float64", "float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool",
    "complex64", "complex128",
)  # fmt: skip
EPSILON = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}
RINGS = ("plus_times", "min_plus", "max_times", "max_plus", "plus_pair", "any_pair", "min_first", "max_second")
LONG = (30, 33, 64, 129, 300, 520, 700)


def drawn(number: int, device: str) -> str | None:
    """What differs in the call of a number; None where nothing does. The interpreter gets a few elements."""
    small = device == "interpreter"
    r, rng = random.Random(number), np.random.default_rng(number)
    rank = r.choice((0, 1, 2, 2, 2, 2, 3, 3, 4))
    spec, dtype = r.choice(FORMATS[rank]), r.choice(DTYPES)
    shape = [r.choice((0, 1, 2, 3, 5, 6) if small else (0, 1, 2, 3, 5, 7, 8, 12, 16)) for _ in range(rank)]
    if rank and not small and r.random() < 0.35:
        shape[r.randrange(rank)] = r.choice(LONG)
    if spec.startswith("nm"):
        shape[1] = -(-shape[1] // 4) * 4
    spec = spec.replace("(12)", f"({max(1, shape[-1])})") if spec.startswith("ell") else spec
    density = min(r.choice((0.0, 0.05, 0.3, 0.9, 1.0)), 0.25 if spec.startswith("nm") else 1.0)
    array = _array(r, rng, tuple(shape), dtype, density)
    case = r.choice([*cases(tuple(shape)), *_others(r, tuple(shape))])
    dense = [_array(r, rng, s, r.choice((dtype, dtype, r.choice(DTYPES))), 0.8) for s in case[2]]
    if dtype.startswith("complex") and any(w in case[0] for w in ("soft", "logsum", "var", "std", "attend", "max")):
        return None  # refused on both, by errors of other classes
    try:
        host = tensor(array, spec)
    except ow.errors.FormatError:
        return None  # a format that this array does not have
    found = _difference(case, host, dense, device)
    types = [str(x.dtype) for x in dense]
    return found and f"{number}: {case[0]} of {spec} {tuple(shape)} {dtype} {density} with {types}: {found}"


def _array(r: random.Random, rng: Any, shape: tuple[int, ...], dtype: str, density: float) -> np.ndarray[Any, Any]:
    """Small whole numbers, sometimes with rows of zeros, NaN and infinities."""
    array = rng.integers(0, 4, shape) * (rng.random(shape) < density)
    if r.random() < 0.3 and len(shape) > 1 and shape[0]:
        array[rng.random(shape[0]) < 0.5] = 0
    array = np.asarray(array).astype(dtype)
    if dtype.startswith("float") and r.random() < 0.3:
        special = rng.choice(np.array([np.nan, np.inf, -1.5, -0.0], dtype), shape)
        array = np.where(rng.random(shape) < 0.1, special, array).astype(dtype)
    return array * (1 + 1j * rng.integers(-1, 2, shape)).astype(dtype) if dtype.startswith("complex") else array


def _others(r: random.Random, shape: tuple[int, ...]) -> list[Case]:
    """Keys, conversions, and products of sparse matrices over semirings, under masks."""
    if not shape:
        return []
    format = r.choice([f for f in FORMATS[len(shape)] if not f.startswith(("ell", "nm"))])
    keys = [np.s_[::2], np.s_[..., ::-1], np.s_[1:3], *([np.s_[[0, -1, 0]], np.s_[-1]] if shape[0] else [])]
    out: list[Case] = [(f"key {key}", lambda A, key=key: A[key], ()) for key in keys]
    out += [(f"to {format}", lambda A: A.asformat(ow.format(format, A.ndim)), ()), ("to and check", _checked, ())]
    if len(shape) == 2:
        ring, complement = r.choice(RINGS), r.random() < 0.5
        out.append((f"spgemm {ring}", lambda A: ow.spgemm(A, A.T, semiring=ring), ()))
        out.append(("masked spgemm", lambda A: ow.spgemm(A @ A.T, A, semiring=ring, mask=A, complement=complement), ()))
        out.append(("three", lambda A: ow.einsum("ij,kj,kl->il", A, A, A), ()))
    return out


def _checked(A: Any) -> Any:
    return A.asformat("coo").check()


def _difference(case: Case, host: Any, dense: list[Any], device: str) -> str:
    there, operands = host.to(device), [ow.asarray(x, device=device) for x in dense]
    try:
        want, refused = case[1](host, *dense), None
    except Exception as error:
        want, refused = None, error
    try:
        found = case[1](there, *operands)
    except UnsupportedError as error:
        return "" if "\n  got:" in str(error) else f"refused without formats: {error}"
    except Exception as error:
        known = (
            type(refused),
            ow.errors.DTypeError,
            ow.errors.ShapeError,
        )  # a tensor without elements, of complex numbers
        same = refused is not None and isinstance(error, known)
        return "" if same else f"{type(error).__name__}: {str(error)[:300]}, on the host {type(refused).__name__}"
    if refused is not None:
        return f"a result, on the host {type(refused).__name__}: {str(refused)[:200]}"
    got = found.to("cpu").check()
    want = want if isinstance(want, ow.Tensor) else ow.asarray(np.asarray(want))
    if (got.shape, got.dtype, got.format) != (want.shape, want.dtype, want.format):
        return f"{got.shape, got.dtype, got.format}, on the host {want.shape, want.dtype, want.format}"
    if not got.format.is_dense and (got.nse != want.nse or (got.size and not _close(got.fill_value, want.fill_value))):
        return f"{got.nse} elements, fill {got.fill_value}; on the host {want.nse}, {want.fill_value}"
    tolerance = max([1e-12, *(EPSILON.get(str(x.dtype), 0) for x in (want, host, *dense))])
    same = np.isclose(got.to_numpy(), want.to_numpy(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if "prod" in case[0] or "three" in case[0]:  # in another order other parts overflow, or are infinity times 0
        same |= ~np.isfinite(got.to_numpy()) | ~np.isfinite(want.to_numpy())
    return "" if same.all() else f"{got.to_numpy()[~same][:4]}, on the host {want.to_numpy()[~same][:4]}"


def _close(x: Any, y: Any) -> bool:
    return bool(np.isclose(x, y, equal_nan=True))


def main(arguments: list[str] | None = None) -> int:
    """The number of calls that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    faults = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(given.seed * 1_000_000, given.seed * 1_000_000 + given.count):
            found = drawn(number, given.device)
            if found:
                faults += 1
                print(found, flush=True)
    return faults


if __name__ == "__main__":
    sys.exit(min(main(), 100))
