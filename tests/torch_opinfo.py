"""torch's own sample inputs, in every layout: an operation on Tensors against the same one on dense tensors.

A cell is one operation of torch's `op_db` on one layout: its samples, of which the stored elements are a fixed half, are
given once with the first operand in the layout and once with all of them. A cell is green where every sample has the
value, dtype and shape, the gradient and the second gradient of torch on dense tensors (at the stored elements).
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

import openwork as ow
from openwork.ops.indexing.taking import values_at


def is_tensor(x: Any) -> bool:
    """Whether a node of a tree is a Tensor, which is one operand, not its buffers."""
    return isinstance(x, ow.Tensor)


ERRORS = (ow.UnsupportedError, ow.DTypeError, ow.ShapeError, ow.FormatError)
"""What a refusal is."""


@dataclass(frozen=True)
class Layout:
    """A format for each rank from `least` to `most`."""

    name: str
    least: int = 2
    most: int = 2
    batch: bool = False
    dense: int = 0
    exact: bool = True

    def fits(self, rank: int) -> bool:
        return self.least <= rank <= self.most

    def format(self, rank: int) -> ow.Format:
        return ow.format(self.name, rank, batch=rank - 2 - self.dense if self.batch else 0, dense=self.dense)


_COMPRESSED = ("csr", "csc", "bsr(2, 2)", "bsc(2, 2)")
LAYOUTS: dict[str, Layout] = {
    "coo": Layout("coo", 1, 6),
    "uncoalesced coo": Layout("coo", 1, 6, exact=False),
    "hybrid coo": Layout("coo", 2, 6, dense=1),
    "uncoalesced hybrid coo": Layout("coo", 2, 6, dense=1, exact=False),
    **{name[:3]: Layout(name) for name in _COMPRESSED},
    **{f"batched {name[:3]}": Layout(name, 3, 6, batch=True) for name in _COMPRESSED},
    **{f"hybrid {name[:3]}": Layout(name, 3, 6, batch=True, dense=1) for name in _COMPRESSED},
    "dcsr": Layout("dcsr"),
    "dia": Layout("dia"),
    "ell": Layout("ell(20)"),
    "csf": Layout("csf", 2, 6),
    "bitmap": Layout("bitmap", 1, 6),
}
"""torch's sixteen kinds of sparse layout, then openwork's own."""

TORCHS = tuple(LAYOUTS)[:16]


def pattern(shape: tuple[int, ...]) -> torch.Tensor:
    """Which elements are stored: a half of the last two dimensions, the diagonal included, one row left out."""
    generator = torch.Generator().manual_seed(5)
    tail = shape[-2:]
    keep = torch.rand(tail, generator=generator) < 0.5
    if len(tail) == 2:
        keep[1:2] = False
        keep.diagonal().fill_(True)
    return keep.expand(shape)


def in_layout(x: torch.Tensor, layout: Layout) -> ow.Tensor:
    """The stored half of a tensor in a layout."""
    keep = pattern(tuple(x.shape))
    structure = ow.asarray(keep.contiguous()).asformat(layout.format(x.ndim))
    t = ow.sparse_mask(torch.where(keep, x, 0), structure)
    return t if layout.exact else twice(t)


def twice(t: ow.Tensor) -> ow.Tensor:
    """Every element stored twice, in halves."""
    where = t.indices()
    v = t.values.reshape(where.shape[1], *t.shape[t.sparse_dim :])
    first, second = (v / 2, v / 2) if v.dtype.is_floating_point or v.dtype.is_complex else (v, v & ~v)
    return ow.sparse_coo_tensor(
        torch.cat([where, where], 1), torch.cat([first, second]), tuple(t.shape), is_coalesced=False
    )


@dataclass
class Operands:
    """The arguments of a call on Tensors and of the same one on dense tensors; the pairs of those that may be recorded."""

    sparse: tuple[Any, ...]
    dense: tuple[Any, ...]
    options: dict[str, Any]
    dense_options: dict[str, Any]
    pairs: list[tuple[Any, torch.Tensor]] = field(default_factory=list)


def operands(sample: Any, layout: Layout, every: bool, record: bool) -> Operands | None:
    """The sample's arguments; None where no operand fits the layout, or `every` makes no difference."""
    pairs: list[tuple[Any, torch.Tensor]] = []
    count = 0

    def made(x: Any, sparse: bool) -> tuple[Any, Any]:
        nonlocal count
        if not isinstance(x, torch.Tensor):
            return x, x
        x = x if x.layout == torch.strided else x.to_dense()
        recorded = record and (x.is_floating_point() or x.is_complex())
        x = x.detach().clone()
        if not (sparse and layout.fits(x.ndim)):
            mine, theirs = x, x.clone()
        else:
            count += 1
            mine = in_layout(x, layout)
            theirs = mine.to_dense().clone()
        if recorded:
            mine, theirs = mine.requires_grad_(), theirs.requires_grad_()
            pairs.append((mine, theirs))
        return mine, theirs

    def split(x: Any, sparse: bool) -> tuple[Any, Any]:
        leaves, spec = pytree.tree_flatten(x, is_leaf=is_tensor)
        found = [made(leaf, sparse and fits(leaf)) for leaf in leaves]
        return tuple(pytree.tree_unflatten([f[k] for f in found], spec) for k in (0, 1))

    def fits(x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.dtype == first.dtype

    first = next((x for x in pytree.tree_leaves(sample.input, is_leaf=is_tensor) if isinstance(x, torch.Tensor)), None)
    if first is None:
        return None
    head = split(sample.input, True)
    alone = count
    tail, options = split(sample.args, every), split(sample.kwargs, every)
    if not count or (every and count == alone):
        return None
    return Operands((head[0], *tail[0]), (head[1], *tail[1]), options[0], options[1], pairs)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; a method of torch's tensors as the method of whatever it is given."""
    if getattr(function, "__qualname__", "") == "<lambda>" and "item" in function.__code__.co_names:
        return lambda x: x.item()
    if type(function).__name__ not in ("method_descriptor", "wrapper_descriptor"):
        return function
    return lambda x, *args, **options: getattr(x, function.__name__)(*args, **options)


SPECIFIED = ("softmax", "log_softmax", "nn.functional.softmin", "softmax.with_dtype", "log_softmax.with_dtype",
             "nn.functional.softmin.with_dtype")  # fmt: skip
"""Operations over the specified elements, as torch.sparse.softmax: the others are minus infinity there, 0 in the result."""

KINKS = ("nn.functional.prelu", "max.reduction_with_dim", "min.reduction_with_dim", "sort", "topk", "kthvalue", "median",
         "nanmedian", "mode", "cummax", "cummin", "msort", "quantile", "nanquantile", "to_sparse")  # fmt: skip
"""Operations whose gradient at an element that is 0 is a choice: it is compared at the others."""

PLACES = ("max.reduction_with_dim", "min.reduction_with_dim", "argmax", "argmin", "sort", "argsort", "topk", "kthvalue",
          "median", "nanmedian", "mode", "cummax", "cummin")  # fmt: skip
"""Operations that name places of elements of which several are equal: the elements are compared."""


def oracle(op: Any, t: Any) -> Callable[..., Any]:
    """What the operation of `t` is on dense tensors."""
    function = called(op.op)
    if variant(op) not in SPECIFIED:
        return function
    edge = math.inf if "softmin" in op.name else -math.inf

    def over_specified(x: torch.Tensor, *args: Any, **options: Any) -> Any:
        s = ow.asarray(t).detach()._storage
        keep = ow.Tensor._from_storage(s.with_values(torch.ones_like(s.values), 0)).to_dense() != 0
        return torch.where(keep, function(x.masked_fill(~keep, edge), *args, **options), 0)

    return over_specified


def flat(result: Any) -> list[Any]:
    return [x for x in pytree.tree_leaves(result, is_leaf=is_tensor) if x is not None]


def dense(x: Any) -> Any:
    return (
        x.to_dense() if isinstance(x, ow.Tensor) or (isinstance(x, torch.Tensor) and x.layout != torch.strided) else x
    )


def same(got: Any, want: Any, tolerance: float, places: bool = True) -> str:
    """What is different; nothing where both are equal."""
    mine, theirs = flat(got), flat(want)
    if len(mine) != len(theirs):
        return f"{len(mine)} results for {len(theirs)}"
    for a, b in zip(mine, theirs, strict=True):
        a, b = dense(a), dense(b)
        if not isinstance(b, torch.Tensor):
            if isinstance(a, torch.Tensor) or a != b:
                return f"{a} for {b}"
            continue
        if not isinstance(a, torch.Tensor):
            return f"{type(a).__name__} for a tensor"
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{a.dtype} {tuple(a.shape)} for {b.dtype} {tuple(b.shape)}"
        if b.dtype == torch.int64 and not places:
            continue
        if not torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"values differ: {a.flatten()[:6].tolist()} for {b.flatten()[:6].tolist()}"
    return ""


def loss(result: Any) -> torch.Tensor | None:
    """A number that depends on every recorded result."""
    total = None
    for x in flat(result):
        x = dense(x)
        if not (isinstance(x, torch.Tensor) and x.requires_grad):
            continue
        weights = torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).reshape(x.shape).to(x.dtype)
        part = (x * weights).sum()
        part = part.real + part.imag if part.is_complex() else part
        total = part if total is None else total + part
    return total


def at(t: Any, grad: torch.Tensor) -> torch.Tensor:
    """A gradient of a dense tensor at the stored elements of its sparse counterpart."""
    if not isinstance(t, ow.Tensor):
        return grad
    return values_at(ow.asarray(grad.contiguous()), t.detach()._storage)


def stored(t: Any, grad: torch.Tensor) -> torch.Tensor:
    """A gradient of the values, that of padding left out."""
    if not isinstance(t, ow.Tensor):
        return grad
    ones = ow.asarray(torch.ones(t.shape, dtype=torch.bool))
    return torch.where(values_at(ones, t.detach()._storage), grad, 0)


def chosen(op: Any, t: Any, value: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """A gradient where it is no choice."""
    if variant(op) not in KINKS:
        return grad
    return torch.where(at(t, value.detach()) != 0, grad, 0)


def gradients(value: torch.Tensor, leaves: list[torch.Tensor], again: bool) -> list[torch.Tensor]:
    found = torch.autograd.grad(value, leaves, create_graph=again, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def leaf(x: Any) -> torch.Tensor:
    return x.values if isinstance(x, ow.Tensor) else x


def seconds(op: Any, pairs: list[tuple[Any, torch.Tensor]], mine: list[Any], theirs: list[Any]) -> tuple[Any, Any]:
    """Sums of the gradients at the stored elements, weighted alike."""
    first = second = None
    for (t, x), a, b in zip(pairs, mine, theirs, strict=True):
        a = stored(t, a) if isinstance(t, ow.Tensor) else a
        taken = b
        if isinstance(t, ow.Tensor):
            numbers = at(t, torch.arange(b.numel()).reshape(b.shape))
            taken = b.flatten()[numbers] if b.numel() else torch.zeros_like(a)
        a, taken = (chosen(op, t, x, g) for g in (a, stored(t, taken)))
        w = torch.linspace(1.0, 2.0, a.numel(), dtype=torch.float64).reshape(a.shape).to(a.dtype)
        one, other = (a * w).sum(), (taken * w).sum()
        one, other = (one.real + one.imag, other.real + other.imag) if a.is_complex() else (one, other)
        first, second = (one, other) if first is None else (first + one, second + other)
    return first, second


@dataclass
class Verdict:
    """What became of a cell, by stage: empty where all is well."""

    forward: str = ""
    backward: str = ""
    double: str = ""
    samples: int = 0
    differentiable: bool = False

    def note(self, stage: str, what: str) -> None:
        """Keep the first finding; one that is wrong goes before a refusal."""
        have = getattr(self, stage)
        if not have or (have.startswith("refused") and not what.startswith("refused")):
            setattr(self, stage, what)


def refusal(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    kind = "refused" if isinstance(error, ERRORS) and ("help" in text or "supported" in text) else "crash"
    return f"{kind}: {type(error).__name__}: {text}"


def attempt(verdict: Verdict, stage: str, function: Callable[[], str]) -> bool:
    """Run one stage; whether it went well."""
    try:
        found = function()
    except Exception as error:
        found = refusal(error)
        if stage != "forward" and not found.startswith("refused"):
            found += f" [{stage}]"
    if found:
        verdict.note(stage, found)
    return not found


def judge(
    op: Any, sample: Any, layout: Layout, verdict: Verdict, every: bool, record: bool, tolerance: float = 1e-7
) -> None:
    """Run one sample, and enter what is found."""
    given = operands(sample, layout, every, record)
    if given is None:
        return
    try:
        want = oracle(op, given.sparse[0])(*given.dense, **given.dense_options)
    except Exception:
        return
    verdict.samples += 1
    got: Any = None

    def forward() -> str:
        nonlocal got
        got = called(op.op)(*given.sparse, **given.options)
        return same(got, want, tolerance, variant(op) not in PLACES)

    alone = Verdict()
    if not attempt(alone, "forward", forward):
        with contextlib.suppress(Exception):
            verdict.differentiable |= loss(want) is not None and bool(given.pairs)
        if alone.forward.startswith("refused"):
            verdict.note("backward", alone.forward)
            verdict.note("double", alone.forward)
            with torch.no_grad():
                attempt(verdict, "forward", forward)
        else:
            verdict.note("forward", alone.forward)
        return
    try:
        theirs = loss(want)
    except Exception:
        return
    if theirs is None or not given.pairs:
        return
    leaves = [x for _, x in given.pairs]
    try:
        want_grads = gradients(theirs, leaves, True)
    except Exception:
        return
    verdict.differentiable = True
    grads: list[torch.Tensor] = []

    def backward() -> str:
        value = loss(got)
        if value is None:
            nothing = all(
                not (stored(t, at(t, g.detach())) != 0).any() for (t, _), g in zip(given.pairs, want_grads, strict=True)
            )
            grads.extend(torch.zeros_like(leaf(t)) for t, _ in given.pairs)
            return "" if nothing else "wrong: the result is not recorded"
        grads.extend(gradients(value, [leaf(t) for t, _ in given.pairs], True))
        for (t, x), a, b in zip(given.pairs, grads, want_grads, strict=True):
            mine, theirs = (chosen(op, t, x, stored(t, g.detach())) for g in (a, at(t, b.detach())))
            pole = ~(mine.isfinite() | theirs.isfinite())
            if found := same(mine.masked_fill(pole, 0), theirs.masked_fill(pole, 0), 1e-6):
                return f"wrong: {found}"
        return ""

    if not attempt(verdict, "backward", backward):
        verdict.note("double", verdict.backward)
        return

    def double() -> str:
        mine, other = seconds(op, given.pairs, grads, want_grads)
        if not other.requires_grad:
            return ""
        try:
            wanted = gradients(other, leaves, False)
        except Exception:
            return ""
        if not mine.requires_grad:
            zero = all(not (stored(t, at(t, w)) != 0).any() for (t, _), w in zip(given.pairs, wanted, strict=True))
            return "" if zero else "wrong: the gradient is not recorded"
        found = gradients(mine, [leaf(t) for t, _ in given.pairs], False)
        for (t, x), a, b in zip(given.pairs, found, wanted, strict=True):
            one, other = (chosen(op, t, x, stored(t, g)) for g in (a, at(t, b)))
            if what := same(one, torch.where(other.isfinite(), other, one), 1e-6):
                return f"wrong: {what}"
        return ""

    attempt(verdict, "double", double)


def samples(op: Any, dtype: torch.dtype, limit: int) -> list[Any]:
    """Some of torch's samples, spread over all of them; vectors of unary functions as matrices and stacks besides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(op.sample_inputs("cpu", dtype, requires_grad=False))
    if type(op).__name__ == "UnaryUfuncInfo":
        vector = max(found, key=lambda s: s.input.numel())
        found += [_reshaped(vector, shape) for shape in ((4, 5), (2, 5, 2)) if vector.input.numel() >= 20]
    return found if len(found) <= limit else [found[k * len(found) // limit] for k in range(limit)]


def _reshaped(sample: Any, shape: tuple[int, ...]) -> Any:
    from torch.testing._internal.opinfo.core import SampleInput

    return SampleInput(
        sample.input.reshape(-1)[: torch.Size(shape).numel()].reshape(shape), args=sample.args, kwargs=sample.kwargs
    )


def spread(op: Any, dtype: torch.dtype, layout: Layout, limit: int, cache: dict[Any, Any]) -> list[Any]:
    """At most `limit` samples whose operands fit the layout."""
    key = (op.name, op.variant_test_name, dtype)
    if key not in cache:
        torch.manual_seed(0)
        cache[key] = samples(op, dtype, 10**9)
    fitting = [s for s in cache[key] if _fits(s, layout)]
    return fitting if len(fitting) <= limit else [fitting[k * len(fitting) // limit] for k in range(limit)]


def _fits(sample: Any, layout: Layout) -> bool:
    return any(
        isinstance(x, torch.Tensor) and layout.fits(x.ndim) for x in pytree.tree_leaves(sample.input, is_leaf=is_tensor)
    )


def variant(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def cells(
    op: Any, dtype: torch.dtype, layouts: Sequence[str], limit: int, record: bool = True, tolerance: float = 1e-7
) -> dict[str, Verdict]:
    """The verdict of each layout that some sample fits."""
    cache: dict[Any, Any] = {}
    out: dict[str, Verdict] = {}
    for name in layouts:
        verdict = Verdict()
        layout = LAYOUTS[name]
        for sample in spread(op, dtype, layout, limit, cache):
            for every in (False, True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    judge(op, sample, layout, verdict, every, record, tolerance)
        if verdict.samples:
            out[name] = verdict
    return out
