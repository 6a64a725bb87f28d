"""Every public function of NumPy, called on Tensors -> the section of docs/compatibility.md that says what they answer.

    python tools/numpy_functions.py             write it
    python tools/numpy_functions.py --check     compare
    python tools/numpy_functions.py pad sort    print what single functions answer

Each function is tried with all of some fifty lists of arguments that NumPy takes, arrays made Tensors; the result is
compared with NumPy's on the arrays: value, shape and dtype.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import openwork as ow

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- made by tools/numpy_functions.py -->", "<!-- until here -->"

RNG = np.random.default_rng(3)
M = np.where(RNG.random((4, 4)) < 0.5, RNG.integers(-4, 5, (4, 4)) + 0.5, 0.0)
K = np.where(RNG.random((4, 4)) < 0.5, RNG.integers(0, 5, (4, 4)), 0)
T = np.where(RNG.random((2, 3, 4)) < 0.5, RNG.integers(-4, 5, (2, 3, 4)) + 0.5, 0.0)
V, W, S = np.array([0.0, 2.5, 0.0, -1.0, 3.0, 0.0]), np.array([0, 2, 0, 1, 3, 0]), np.array(2.5)
B, N, C = M > 0, np.where(M > 3, np.nan, M), M + 1j * M.T

CASES: tuple[tuple[Any, ...], ...] = (
    (M,), (V,), (K,), (B,), (N,), (C,), (T,), (S,), (W,), (M, M), (V, V), (K, K), (B, B), (C, C), (T, T), (M, S),
    (M, K), (M, B), (W, V), ([M, M],), ([V, V],), ((M, V[:4]),), (M, 1), (V, 2), (K, 1), (M, -1), (M, 0, 1), (T, 0, 2),
    (M, (0, 1)), (V, V, V), (B, M, M), (B, M), (M, K % 4, 0), (V, W), (V, 0.25), (N, 0.5), (M, [0, 1], 0), (M, 2, 0),
    (M, S * 0 + 2), (V, [1, 2]), (V, (2, 3)), (M, (2, 8)), (M, float), (V, 2, 1), (M, 1, 2.0), (M, 1, V[:4]),
)  # fmt: skip
_NOT_OF_ARRAYS = """
    save savez savez_compressed savetxt load loadtxt fromfile genfromtxt info show_config show_runtime get_include test
    getbufsize setbufsize seterr geterr seterrcall geterrcall printoptions set_printoptions get_printoptions from_dlpack
    frombuffer fromiter fromstring fromregex fromfunction bmat busday_count busday_offset is_busday datetime_as_string
    datetime_data isnat typename issubdtype base_repr binary_repr format_float_positional format_float_scientific
    mintypecode promote_types iterable nested_iters asmatrix add_docstring frompyfunc require isdtype
"""
NOT_OF_ARRAYS = frozenset(_NOT_OF_ARRAYS.split())
"""Functions of files, settings, text, dates, dtypes, and those that make arrays of what is none."""
_UNSAID = """
    empty_like searchsorted partition argpartition unique_values intersect1d setdiff1d setxor1d quantile nanquantile
    percentile nanpercentile det slogdet frexp modf may_share_memory shares_memory eig eigvals
"""
UNSAID = frozenset(_UNSAID.split())
"""Functions whose result some lists of arguments leave open: unsorted vectors, `assume_unique`, memory, NaN."""


@dataclass
class Answer:
    """What a function answers: calls whose result is NumPy's, refusals, and what ought not to be."""

    right: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """NumPy's public functions and ufuncs by name."""
    for module, prefix in ((np, ""), (np.linalg, "linalg."), (np.fft, "fft.")):
        for name in sorted(set(module.__all__)):
            f = getattr(module, name, None)
            if name.startswith("_") or name in NOT_OF_ARRAYS or isinstance(f, type | types.ModuleType):
                continue
            if callable(f):
                yield prefix + name, f


def made(x: Any, format: str) -> Any:
    """Arrays as Tensors, those in lists too."""
    if isinstance(x, np.ndarray):
        try:
            return ow.asarray(x, format=format if x.ndim else None)
        except ow.FormatError:
            return ow.asarray(x, format="coo")
    if isinstance(x, list | tuple) and any(isinstance(i, np.ndarray) for i in x):
        return type(x)(made(i, format) for i in x)
    return x


def plain(x: Any) -> Any:
    """Tensors as arrays."""
    if isinstance(x, ow.Tensor):
        return x.to_numpy()
    return [plain(i) for i in x] if isinstance(x, list | tuple) else x


def difference(got: Any, want: Any) -> str:
    """What differs, nothing where nothing does."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "another number of results"
        return next((d for d in map(difference, got, want) if d), "")
    a, b = np.asarray(got), np.asarray(want)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
    same = np.allclose(a, b, equal_nan=True) if b.dtype.kind in "fciub" else (a == b).all()
    return "" if same else "other values"


def ask(name: str, f: Callable[..., Any], format: str = "csr") -> Answer | None:
    """What a function answers to Tensors; None where NumPy takes none of the lists of arguments."""
    answer, tried = Answer(), False
    for args in CASES:
        try:
            want = f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
        except Exception:
            continue
        tried = True
        try:
            got = f(*(made(a, format) for a in args))
        except (ow.UnsupportedError, ow.SizeError) as error:
            reason = str(error).partition("\n")[0]
            answer.refused[reason] = answer.refused.get(reason, 0) + 1
        except (ow.ShapeError, ow.DTypeError, ow.FormatError, ow.InvariantError, np.linalg.LinAlgError) as error:
            reason = str(error).partition("\n")[0]
            answer.refused[reason] = answer.refused.get(reason, 0) + 1
        except Exception as error:
            answer.wrong.append(f"{type(error).__name__}: {error}"[:100])
        else:
            differs = "" if name.rpartition(".")[2] in UNSAID else difference(plain(got), plain(want))
            answer.wrong += [differs] if differs else []
            answer.right += not differs
    return answer if tried else None


def answers(names: list[str] | None = None, format: str = "csr") -> dict[str, Answer]:
    """The answers of all functions, or of some."""
    out = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, f in functions():
            found = ask(name, f, format) if names is None or name in names else None
            if found is not None:
                out[name] = found
    return out


def section(found: dict[str, Answer]) -> str:
    """The text of the page."""
    taken = [n for n, a in found.items() if a.right]
    refused = [n for n, a in found.items() if not a.right and not a.wrong]
    wrong = {n: a.wrong[0] for n, a in found.items() if a.wrong}
    right, not_taken = sum(a.right for a in found.values()), sum(sum(a.refused.values()) for a in found.values())
    otherwise = sum(len(a.wrong) for a in found.values())
    calls = right + not_taken + otherwise
    lines = [
        BEGIN,
        "",
        f"`np.f(A, ...)` for the {len(found)} functions of `numpy`, `numpy.linalg` and `numpy.fft` that take arrays,",
        f"with {len(CASES)} lists of arguments, `A` in CSR or, by rank, COO; value, shape and dtype are compared with",
        f"what NumPy {np.__version__} gives of arrays. Of these {calls:,} calls, where NumPy takes the arguments,",
        f"{right:,} give what NumPy gives, {not_taken:,} are refused, {otherwise} answer otherwise.",
        f"Not tried: keywords, `out=` and `where=` among them; {len(NOT_OF_ARRAYS)} functions of files, settings, text,"
        " dates and dtypes.",
        f"Not compared: the values of {len(UNSAID)} functions, which NumPy leaves open for some of the arguments:",
        f"{_names(sorted(UNSAID))}.",
        "",
        f"**Taken ({len(taken)})**, with one list of arguments or more: {_names(taken)}.",
        "",
        f"**Refused ({len(refused)})**, with an error that says what to do; Tensors of dense formats go to NumPy's own:"
        f" {_names(refused)}.",
        "",
    ]
    if wrong:
        lines += [f"**Otherwise ({len(wrong)})**:", ""]
        lines += [f"- `{name}`: {text}" for name, text in wrong.items()]
        lines += [""]
    return "\n".join([*lines, END])


def _names(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def main(arguments: list[str]) -> int:
    """Write the section, compare it, or print single answers."""
    names = [a for a in arguments if not a.startswith("--")]
    found = answers(names or None)
    if names:
        for name, answer in found.items():
            print(name, answer)
        return 0
    page = PAGE.read_text()
    before, rest = page.partition(BEGIN)[::2]
    wanted = before + section(found) + rest.partition(END)[2]
    if "--check" in arguments:
        return int(wanted != page)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
