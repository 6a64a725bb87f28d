"""`advise`: a tensor and an operation -> the formats that make sense for it, each with its bytes and measured time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np

from .. import FormatError, ShapeError, SizeError, Tensor, UnsupportedError, asarray, get_num_threads, set_num_threads
from ..classes import frozen
from ..errors import suggestion
from ..format import format as parse
from ..integers import integer
from ..progress import Passes, Progress, ignore, reporting
from ..reals import real
from .facts import Facts, facts_of
from .measure import samples
from .table import table_text
from .units import bytes_text, count_text, shape_text, time_text

__all__ = ["OPERATIONS", "Advice", "Candidate", "advise"]

TOO_LARGE = 16
"""Times the bytes of the smallest format, beyond which a format is not tried."""


@frozen
class Candidate:
    """One format: its name, bytes, the least seconds of a call (None where it was not measured), and why."""

    format: str
    nbytes: int
    seconds: float | None
    why: str


def _shown(format: str) -> str:
    """A format as the table shows it: its name; of one without a name the level formats, from the outermost in."""
    return ", ".join(str(level.format) for level in parse(format).levels) if " -> " in format else format


class Advice:
    """What `advise` found: candidates from the fastest to the slowest, then those that were not measured.

    Examples
    --------
    >>> A = ow.random((50, 50), 0.1, format="csr", rng=0)
    >>> advice = ow.advise(A, op="spmv", seconds=0.01)
    >>> advice["csr"].nbytes == A.nbytes, advice.best in [c.format for c in advice]
    (True, True)
    """

    COLUMNS = ("format", "bytes", "time", "relative", "why")

    def __init__(
        self, operation: str, shape: tuple[int, ...], nse: int, given: str, candidates: list[Candidate]
    ) -> None:
        self.operation, self.shape, self.nse, self.given = operation, shape, nse, given
        self.candidates = sorted(candidates, key=lambda c: (c.seconds is None, c.seconds or 0.0, c.nbytes))

    @property
    def best(self) -> str:
        """The format of the fastest."""
        return self.candidates[0].format

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, format: str) -> Candidate:
        for candidate in self.candidates:
            if candidate.format == format:
                return candidate
        raise KeyError(f"{format!r}{suggestion(format, [c.format for c in self.candidates])}")

    def title(self) -> str:
        """What was asked, and the best format, as a line."""
        elements = f"{count_text(self.nse)} elements"
        return f"{self.operation} of {shape_text(self.shape)}, {elements}; best: {_shown(self.best)}"

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Text of the table, whose columns are `COLUMNS`: time relative to that of the given format.

        Of a format without a name, whose whole text is in `candidates`, the level formats alone.
        """
        base = next((c.seconds for c in self.candidates if c.format == self.given), None)
        return [
            (
                _shown(c.format), bytes_text(c.nbytes), time_text(c.seconds),
                "-" if c.seconds is None or not base else f"{c.seconds / base:.2f}", c.why,
            )
            for c in self.candidates
        ]  # fmt: skip

    def __repr__(self) -> str:
        return f"{self.title()}\n{table_text(self.COLUMNS, self.rows(), left=(0, 4), line=False)}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(h)}</th>" for h in self.COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<p>{escape(self.title())}</p><table><tr>{head}</tr>{body}</table>"


def _vector(n: int, dtype: Any, columns: int = 0) -> Any:
    draw = np.random.default_rng(0).standard_normal((n, columns) if columns else n)
    return draw.astype(dtype if np.dtype(dtype).kind in "fc" else np.float64)


def _rows(t: Tensor, dtype: Any) -> Callable[[], Any]:
    chosen = np.sort(np.random.default_rng(0).choice(t.shape[0], min(t.shape[0], 1 + t.shape[0] // 10), replace=False))
    return lambda: t[chosen]


def _square(t: Tensor, dtype: Any) -> Callable[[], Any]:
    other = t if t.shape[0] == t.shape[1] else t.T
    return lambda: t @ other


OPERATIONS: dict[str, tuple[str, Callable[[Tensor, Any], Callable[[], Any]]]] = {
    "spmv": ("A @ x", lambda t, dtype: (lambda x: lambda: t @ x)(_vector(t.shape[-1], dtype))),
    "spmm": ("A @ X, 32 columns", lambda t, dtype: (lambda x: lambda: t @ x)(_vector(t.shape[-1], dtype, 32))),
    "spmv_t": ("A.T @ x", lambda t, dtype: (lambda x: lambda: t.T @ x)(_vector(t.shape[0], dtype))),
    "spgemm": ("A @ A, or A @ A.T", _square),
    "add": ("A + A", lambda t, dtype: lambda: t + t),
    "scale": ("A * 2", lambda t, dtype: lambda: t * 2),
    "sum": ("sums of rows", lambda t, dtype: lambda: t.sum(axis=-1)),
    "sum:0": ("sums of columns", lambda t, dtype: lambda: t.sum(axis=0)),
    "rows": ("a tenth of the rows", _rows),
}
"""Name -> what is timed, in words, and the call for a tensor of some format."""


def advise(
    t: Any,
    /,
    *,
    op: str = "spmm",
    seconds: float = 1.0,
    threads: int | None = None,
    progress: Progress = None,
) -> Advice:
    """Which formats make sense for an operation: each with its bytes, its measured time, and why.

    The tensor is converted to every format that is not out of all proportion (16 times the bytes of the smallest),
    and the operation is timed on each, in turns, on this machine, after a call that compiles its kernels.

    Parameters
    ----------
    t : Tensor, or what `asarray` takes
    op : "spmv", "spmm" (32 columns), "spmv_t", "spgemm", "add", "scale", "sum", "sum:0" or "rows"
    seconds : for all measurements together, about; conversions and compiling come on top
    threads : of our kernels; default as set
    progress : True for bars on stderr, or a function of (done, total), of formats that are converted, then of rounds
        of measurements

    Returns
    -------
    Advice, which prints as a table; `.best` is the name of the fastest format, `advice["csr"]` one row

    Raises UnsupportedError for another operation, ShapeError for a tensor of no or one dimension.

    Cost: every format is converted and called once; then `seconds` of measurements.
    See also: format, Tensor.asformat, plot.spy.


    Examples
    --------
    >>> A = ow.eye(50, format="csr")
    >>> advice = ow.advise(A, op="scale", seconds=0.001)
    >>> A = A.asformat(advice.best)
    """
    t = asarray(t)
    if op not in OPERATIONS:
        raise UnsupportedError(
            f"advise: op={op!r}{suggestion(op, list(OPERATIONS))}\n  supported: {', '.join(OPERATIONS)}"
        )
    if t.ndim < 2 or (t.ndim > 2 and op in ("spmv", "spmm", "spmv_t", "spgemm")):
        raise ShapeError(
            f"advise: {op} of a tensor of shape {t.shape}\n  expected: a matrix\n  help: op='sum' or 'add' take any"
        )
    seconds = real(seconds, "advise", "seconds")
    facts = facts_of(t)
    least = max(1, min(facts.nbytes.values()))
    before = get_num_threads()
    if threads is not None:
        set_num_threads(integer(threads, "advise", "threads", boolean=False))
    try:
        with reporting(progress, "advise") as passes:
            candidates = _measured(t, op, facts, least, seconds, passes)
    finally:
        set_num_threads(before)
    return Advice(OPERATIONS[op][0], t.shape, int(t.nse), facts.given, candidates)


def _measured(t: Tensor, op: str, facts: Facts, least: int, seconds: float, passes: Passes) -> list[Candidate]:
    candidates, runs, sizes = [], {}, {}
    step = passes.begin("converting", "formats") or ignore
    for done, (name, nbytes) in enumerate(facts.nbytes.items()):
        step(done, len(facts.nbytes), _shown(name))
        if nbytes > TOO_LARGE * least and name != facts.given:
            candidates.append(
                Candidate(name, nbytes, None, f"{nbytes / least:,.0f} times the smallest; {facts.why[name]}")
            )
            continue
        try:
            converted = t if name == facts.given else t.asformat(parse(name, ndim=t.ndim))
            run = OPERATIONS[op][1](converted, t.dtype)
            run()
        except (UnsupportedError, FormatError, SizeError) as error:
            candidates.append(Candidate(name, nbytes, None, str(error).partition("\n")[0]))
            continue
        runs[name], sizes[name] = run, int(converted.nbytes)
    step(len(facts.nbytes), len(facts.nbytes))
    times = samples(runs, seconds, passes.begin("measuring", "rounds")) if runs else {}
    return candidates + [Candidate(name, sizes[name], min(times[name]), facts.why[name]) for name in runs]
