"""Invalid calls of torch's functions: what torch refuses of dense tensors, asked of Tensors.

A call is torch's own error input, or a sample input in which one thing is wrong: a number, a dtype, an extent, a rank, a
kind of argument, one argument too many. Where torch refuses it, a Tensor in the place of the first operand, or of all,
is refused too, by a typed error: one of openwork.errors, one that is raised on purpose, or torch's own.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch_opinfo import LAYOUTS, Layout, called, in_layout, is_tensor

import openwork as ow
from openwork import errors


@dataclass(frozen=True)
class Call:
    """A call that torch refuses of dense tensors: what is wrong with it, the arguments, torch's error."""

    what: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    error: Exception


def refused(op: Any, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Call | None:
    """The call where torch refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            called(op.op)(*_copied(args), **_copied(options))
    except Exception as error:
        if not isinstance(error, NotImplementedError | AttributeError):  # no answer, or one of Python's operators
            return Call(what, args, options, error)
    return None


def _copied(x: Any) -> Any:
    return pytree.tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, x, is_leaf=is_tensor)


def error_inputs(op: Any) -> Iterator[Call]:
    """torch's own error inputs of an operation."""
    if op.error_inputs_func is None:
        return
    for k, e in enumerate(op.error_inputs_func(op, "cpu")):
        s = e.sample_input
        call = refused(op, f"error input {k}", (s.input, *s.args), s.kwargs)
        if call is not None:
            yield call


def mutations(x: Any) -> Iterator[tuple[str, Any]]:
    """One argument -> what may be wrong with it."""
    if isinstance(x, torch.Tensor):
        x = x if x.layout == torch.strided else x.to_dense()
        if x.ndim:
            yield "an extent less", x[..., :-1]
            yield "an extent more", torch.cat([x, x[:1]]) if len(x) else x.new_ones(1, *x.shape[1:])
        yield "a rank more", x[None]
        for dtype in (torch.int64, torch.bool, torch.complex128, torch.float32):
            if dtype != x.dtype:
                yield f"{dtype}", x.detach().to(dtype)
        yield "a number for a tensor", 2
    elif isinstance(x, bool) or x is None or isinstance(x, str | torch.dtype):
        yield "a word", "abc"
    elif isinstance(x, int):
        yield "99", 99
        yield "-99", -99
        yield "1.5", 1.5
    elif isinstance(x, float):
        yield "-99.0", -99.0
    if not isinstance(x, str):
        yield "a word", "abc"
    yield "no argument", None


def mutated(op: Any, sample: Any) -> Iterator[Call]:
    """The sample with one thing wrong, wherever torch refuses it."""
    args, options = (sample.input, *sample.args), dict(sample.kwargs)
    leaves, spec = pytree.tree_flatten((args, options), is_leaf=is_tensor)
    for k, leaf in enumerate(leaves):
        for what, wrong in mutations(leaf):
            new_args, new_options = pytree.tree_unflatten([*leaves[:k], wrong, *leaves[k + 1 :]], spec)
            if (call := refused(op, f"argument {k}: {what}", new_args, new_options)) is not None:
                yield call
    for what, new_args, new_options in (
        ("one argument too many", (*args, *[None] * 12, 7), options),
        ("an unknown option", args, {**options, "unknown": 1}),
    ):
        if (call := refused(op, what, new_args, new_options)) is not None:
            yield call


def sparse(x: Any, layout: Layout) -> Any:
    """A tensor that fits the layout in it; anything else as it is."""
    fits = isinstance(x, torch.Tensor) and layout.fits(x.ndim) and x.layout == torch.strided and x.is_cpu
    try:
        return in_layout(x.detach().clone(), layout).astype(x.dtype) if fits else x
    except (errors.DTypeError, errors.UnsupportedError, errors.ShapeError):  # a dtype that a Tensor has not
        return x


def operands(call: Call, name: str, every: bool) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with the first tensor, or every one, in a layout; None where that makes no difference."""
    layout = LAYOUTS[name]
    leaves, spec = pytree.tree_flatten((call.args, call.options), is_leaf=is_tensor)
    tensors = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    count = 0
    first = leaves[tensors[0]].dtype if tensors else None
    for k in tensors if every else tensors[:1]:
        if leaves[k].dtype != first:  # coordinates and masks are what they are
            continue
        leaves[k] = sparse(leaves[k], layout)
        count += isinstance(leaves[k], ow.Tensor)
    if count < 1 + every:
        return None
    args, options = pytree.tree_unflatten(leaves, spec)
    return args, options


TYPED = tuple(
    x for x in vars(errors).values() if inspect.isclass(x) and issubclass(x, Exception) and x is not errors.CompilerBug
)
"""The types of openwork.errors."""


def verdict(call: Call, error: Exception | None) -> str:
    """What is wrong with ours, where torch gives an error; nothing where it is a typed error too."""
    if error is None:
        return "a result"
    if isinstance(error, TYPED):
        return ""
    code, line = [(f.f_code, line) for f, line in traceback.walk_tb(error.__traceback__)][-1]
    on_purpose = linecache.getline(code.co_filename, line).strip().startswith("raise")
    if on_purpose and isinstance(error, TypeError | ValueError | IndexError):
        return ""
    if type(error) is type(call.error):
        return ""
    return f"from the inside: {type(error).__name__}"


def broader(op: Any, given: tuple[tuple[Any, ...], dict[str, Any]], got: Any) -> bool:
    """Whether a result is torch's of the same operands in other dtypes, those that they are promoted to."""
    leaves, spec = pytree.tree_flatten(given, is_leaf=is_tensor)
    leaves = [x.to_dense() if isinstance(x, ow.Tensor) else x for x in leaves]
    tensors = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    dtypes = [leaves[k].dtype for k in tensors]
    common = torch.result_type(leaves[tensors[0]], leaves[tensors[0]])
    for d in dtypes:
        common = torch.promote_types(common, d)
    wide = common if common.is_floating_point or common.is_complex else torch.float64
    for change in (
        lambda k, d: common,
        lambda k, d: common if d.is_floating_point or d.is_complex else d,
        lambda k, d: wide,
        lambda k, d: wide if k == tensors[0] else d,
        lambda k, d: torch.int64 if d == torch.bool else d,
    ):
        cast = [x.to(change(k, x.dtype)) if isinstance(x, torch.Tensor) else x for k, x in enumerate(leaves)]
        args, options = pytree.tree_unflatten(cast, spec)
        try:
            want = called(op.op)(*args, **options)
        except Exception:
            continue
        mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(want)
        if len(mine) == len(theirs) and all(_equal(a, b) for a, b in zip(mine, theirs, strict=True)):
            return True
    return False


def _equal(a: Any, b: Any) -> bool:
    a = a.to_dense() if isinstance(a, ow.Tensor) else a
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or a.shape != b.shape:
        return False
    wide = torch.promote_types(a.dtype, b.dtype)
    return torch.allclose(a.to(wide), b.to(wide), rtol=1e-5, atol=1e-6, equal_nan=True)


def judge(op: Any, call: Call, name: str, every: bool) -> tuple[str, str] | None:
    """Make the call of Tensors: what is wrong, and what came; None where there are no operands for it."""
    given = operands(call, name, every)
    if given is None:
        return None
    got: Any = None
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = called(op.op)(*given[0], **given[1])
        except Exception as e:
            error = e
        wrong = "" if error is None and broader(op, given, got) else verdict(call, error)
    return wrong, " ".join((repr(got) if error is None else repr(error)).split())[:200]
