"""The text of a call -> what it will give: its results' formats, and types and lengths of their buffers.

The call is run on a few elements of the same formats and shapes, once, when torch.compile traces it; see `calls.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ...errors import FormatError, UnsupportedError
from ...format.format import Format
from ...interop.constructors import asarray
from ...interop.layouts import sparse_coo_tensor
from ...masked.tensor import MaskedTensor
from ...storage import sizes
from ...storage.buffers import strided_address, torch_dtype
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .call_text import Node, constant, decoded, format_of, parsed
from .calls import run_call

__all__ = ["Result", "sample_result"]


class Result(NamedTuple):
    """What a call gives: its node, types and lengths of what is new, and the places of buffers without a graph."""

    node: Node
    outputs: str
    detached: tuple[int, ...]


def sample_result(text: str, recorded: Sequence[int]) -> Result:
    """What a call gives, found by running it on a few elements; `recorded` are the places of recorded buffers.

    Sparse operands have the elements of the first, or fewer and fewer of these, so that a result which shares a
    structure is told from one that happens to have the same. What asks for one structure runs with one.

    Raises what the call raises, and UnsupportedError for results that are no tensors: they depend on the data.
    """
    try:
        return _sampled(text, recorded, 1)
    except Exception:  # the call's own refusal: the second try tells whether it is of these structures alone
        return _sampled(text, recorded, 0)


def _sampled(text: str, recorded: Sequence[int], fewer: int) -> Result:
    """`sample_result`, where each operand has `fewer` elements than the one before."""
    name, node = parsed(text)
    buffers: dict[int, torch.Tensor] = {}
    _make_samples(node, buffers, itertools.count(SAMPLE, -fewer))
    given = [buffers[k] for k in range(len(buffers))]
    for k in recorded:
        given[k].requires_grad_()
    with torch.set_grad_enabled(bool(recorded)):
        result = run_call(text, given)
    found = _Sampled(name, given, bool(recorded))
    form = found.node(result)
    outputs = repr((_encoded_result(form), tuple(found.lengths))) if found.lengths else ""
    return Result(form, outputs, tuple(found.detached))


def _encoded_result(node: Node) -> Node:
    """A result's node as literals."""
    kind, *rest = node
    if kind == "tensor":
        text, scalar, fill, *more = rest
        return kind, text, scalar, constant(fill), *more
    if kind == "masked":
        return kind, rest[0], _encoded_result(rest[1])
    if kind in ("tuple", "list", "named", "sequence"):
        return "tuple", tuple(map(_encoded_result, rest[-1]))
    return ("constant", None) if kind == "constant" else node


SAMPLE = 4
"""Elements of the first sparse operand of a sample."""


def _make_samples(node: Node, buffers: dict[int, torch.Tensor], counts: Iterator[int]) -> None:
    """Buffers of a few elements for the arguments of a call."""
    kind, *rest = node
    if kind == "array":
        dtype, shape, place = rest
        of = torch.ones if (dtype := decoded(dtype)).is_floating_point or dtype.is_complex else torch.zeros
        buffers[place] = of(shape, dtype=dtype)
    elif kind == "masked":
        _make_samples(rest[1], buffers, counts)
    elif kind in ("tuple", "list", "dict"):
        for n in rest[-1]:
            _make_samples(n, buffers, counts)
    elif kind == "tensor":
        text, scalar, fill, shape, _, dtypes, places = rest
        s = _sample(format_of(text), scalar, decoded(fill), tuple(shape), next(counts))
        for place, b, dtype in zip(places, s.buffers, dtypes, strict=True):
            buffers[place] = b.to(decoded(dtype)).clone()


def _sample(format: Format, scalar: str, fill: Any, shape: tuple[int, ...], count: int) -> Storage:
    """A tensor of a format with a few elements, of which one is explicitly 0 and, where it may be, one there twice."""
    spread = min(SAMPLE, max(shape, default=1)) if math.prod(shape) else 0
    order = torch.arange(spread)[: max(count, 1)]
    if not format.is_ordered:
        order = order.flip(0)
    if not format.is_unique:
        order = torch.cat([order, order[-1:]])
    values = torch.arange(len(order)).to(torch_dtype(scalar))
    at = torch.stack([order * n // max(spread, 1) for n in shape]) if shape else order.expand(0, -1)
    t = sparse_coo_tensor(at, values, shape) if shape else asarray(values[0])
    t = Tensor._from_storage(t._storage.with_values(t.values, fill))
    try:
        return t.asformat(format)._storage
    except FormatError:
        if count <= 1:
            raise
        return _sample(format, scalar, fill, shape, 1)  # fewer fit into a row


class _Sampled:
    """The node of a result, with the new buffers' types and lengths."""

    def __init__(self, name: str, given: Sequence[torch.Tensor], is_recorded: bool) -> None:
        self.name, self.given, self.is_recorded = name, given, is_recorded
        self.addresses = {strided_address(b.detach()): k for k, b in enumerate(given) if math.prod(b.shape)}
        self.lengths: list[Node] = []
        self.detached: list[int] = []
        self.symbols = 0

    def node(self, x: Any) -> Node:
        if isinstance(x, Tensor):
            return self._tensor(x)
        if isinstance(x, MaskedTensor):
            return "masked", x._scalar, self._tensor(x._tensor)
        if isinstance(x, torch.Tensor) and x.layout == torch.strided:
            return "array", self._place(x, tuple(x.shape))
        if type(x) in (tuple, list):
            return "tuple" if type(x) is tuple else "list", tuple(map(self.node, x))
        if isinstance(x, tuple):
            kind = "sequence" if hasattr(x, "n_sequence_fields") else "named"
            return kind, type(x), tuple(map(self.node, x))
        if self.name in _CONSTANT:
            return "constant", x
        raise UnsupportedError(f"{self.name.strip('.:')}: a result of type {type(x).__name__} depends on the data")

    def _place(self, b: torch.Tensor, shape: tuple[Any, ...]) -> int:
        """The place of a buffer: among the arguments, or as a new one of this shape."""
        known = self._known(b)
        if known is not None:
            if self.given[known].requires_grad and not b.requires_grad:
                self.detached.append(known)
            return known
        self.lengths.append((constant(b.dtype), shape))
        if self.is_recorded and not b.requires_grad:
            self.detached.append(-len(self.lengths))
        return -len(self.lengths)

    def _known(self, b: torch.Tensor) -> int | None:
        """The place of the argument's buffer that this one is."""
        known = self.addresses.get(strided_address(b.detach())) if math.prod(b.shape) else None
        same = known is not None and self.given[known].shape == b.shape and self.given[known].dtype == b.dtype
        return known if same else None

    def _tensor(self, t: Tensor) -> Node:
        s = t._raw_storage
        if s.library != "torch":
            raise UnsupportedError("a result over NumPy buffers")
        held, places, dtypes = "", [], []
        for length, b in zip(self._lengths(s), _in_order(s), strict=True):
            held += "-" if b is None else "+"
            if b is not None:
                places.append(self._place(b, (length,)))
                dtypes.append(b.dtype)
        return "tensor", s.format.text, s.scalar, s.fill_value, tuple(s.shape), held[:-1], (), tuple(places)

    def _lengths(self, s: Storage) -> Iterator[Any]:
        """Lengths of pos and crd of each level and of values: numbers, or (symbol, factor, offset).

        A symbol is the length of the crd of a level whose pos tells it: below 0 that of an argument's buffer.
        """
        intervals = s.format.level_intervals(s.shape)
        slices = sizes.batches(s.format, intervals)
        symbol: int | None = None
        parents = slices

        def length(n: int, offset: int = 0) -> Any:
            return n + offset if symbol is None else (symbol, n, offset)

        for at, (level, (lo, hi)) in enumerate(zip(s.format.levels, intervals, strict=True)):
            if at < s.format.batch_ndim:
                yield None
                yield None
                continue
            functions = level.format.functions
            if functions.pos_length is None:
                yield None
                parents = sizes.evaluate(functions.positions, level.format, {"parents": parents, "N": hi - lo})
            else:
                yield length(2 * parents) if level.format.is_loose else length(parents, slices)
                symbol, parents = self._symbol(s.crd[at]), 1
            yield length(parents)
        yield length(parents)

    def _symbol(self, crd: Any) -> int:
        """The number of a length: below 0 that of an argument's buffer."""
        known = self._known(crd)
        self.symbols += known is None
        return self.symbols if known is None else -1 - known


def _in_order(s: Storage) -> Iterator[Any]:
    """pos and crd of each level, then values."""
    for p, c in zip(s.pos, s.crd, strict=True):
        yield p
        yield c
    yield s.values


_CONSTANT = frozenset(
    (
        ":device", ":layout", ":levels", ":is_sparse", ":is_sparse_csr", ":is_cuda", ":is_cpu", ".sparse_dim",
        ".dense_dim", ".batch_dim", ".is_floating_point", ".is_complex", ".is_coalesced", ".is_sparse_coo",
        ".is_sparse_csc", ".is_sparse_bsr", ".is_sparse_csr", ".pos", ".crd",
    )
)  # fmt: skip
"""Members beside those of `traced_calls.MEMBERS` whose values follow from formats and types alone."""
