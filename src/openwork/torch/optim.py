"""Optimizers for dense parameters whose gradients may be sparse by rows, and clipping of such gradients.

A step reads and writes the rows that the gradient has, and no others, but for momentum: rows that have some move on.
The rules are torch.optim's, so a dense gradient (all rows) steps as there. What torch.optim refuses or keeps without
bound on sparse gradients is done here: weight decay, at the rows of the gradient; a momentum buffer of the different
rows touched; numbers of steps of each row. States may lie in files, for tables that do not fit in memory twice.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import torch

from ..errors import ShapeError, UnsupportedError
from ..namespaces import listing as _listing
from ..tensor.tensor import Tensor

__all__ = ["SGD", "Adagrad", "SparseAdam", "clip_grad_norm_", "clip_grad_value_"]

__dir__ = _listing(__name__, __all__)

State = dict[str, Any]


def _values_of(params: Any) -> Any:
    """Parameters, or groups of them, with the values of a Tensor in its place."""
    if isinstance(params, torch.Tensor):
        return params
    found = []
    for p in [params] if _is_ours(params) else params:
        if isinstance(p, dict):
            p = {**p, "params": _values_of(p["params"])}
        values = p.values if _is_ours(p) else p
        if _is_ours(p) and not isinstance(p, Tensor) and not isinstance(values, torch.Tensor):
            raise UnsupportedError(
                f"optimizer: a parameter on {p.device}\n  got: {p.format}\n  supported: torch's memory, on cpu and cuda"
                "\n  help: to('cpu') moves a tensor to the host"
            )
        found.append(values)
    return found


def _is_ours(x: Any) -> bool:
    """Whether a parameter is a Tensor, or a tensor on a device."""
    return isinstance(x, Tensor) or hasattr(type(x), "__openwork_device__")


class _ByRows(torch.optim.Optimizer):  # type: ignore[misc]
    """An optimizer whose rule is told by rows; `_update` is all that differs."""

    def __init__(
        self, params: Any, defaults: State, state_folder: str | os.PathLike[str] | None = None
    ) -> None:  # fmt: skip
        for name in ("lr", "weight_decay", "momentum", "eps", "lr_decay", "initial_accumulator_value"):
            if defaults.get(name, 0) < 0:
                raise ShapeError(f"{type(self).__name__}: {name}={defaults[name]}\n  expected: {name} >= 0")
        if state_folder is not None and not os.path.isdir(state_folder):
            raise ShapeError(
                f"{type(self).__name__}: state_folder={state_folder!r}\n  expected: a folder that is there"
            )
        self._state_folder = state_folder
        super().__init__(_values_of(params), defaults)

    def _zeros(self, shape: Sequence[int], p: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A state of zeros; with a folder it is of a file without a name, where what is written to takes room."""
        dtype, shape = p.dtype if dtype is None else dtype, tuple(shape)
        size = math.prod(shape)
        if self._state_folder is None or not size or not p.is_cpu:
            return torch.zeros(shape, dtype=dtype, device=p.device)
        handle, path = tempfile.mkstemp(".state", "openwork-", self._state_folder)
        os.close(handle)
        mapped: torch.Tensor = torch.from_file(path, shared=True, size=size, dtype=dtype).reshape(shape)
        if os.name == "posix":
            os.unlink(path)
        return mapped

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every parameter that has a gradient; the closure's loss, where one is given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_parameter(p, p.grad, self.state[p], group)
        return loss

    def _step_parameter(self, p: torch.Tensor, grad: torch.Tensor, state: State, group: State) -> None:
        if p.is_complex():
            raise UnsupportedError(
                f"{type(self).__name__}: a parameter of {p.dtype}"
                "\n  help: train torch.view_as_real of it, or use torch.optim"
            )
        if grad.layout == torch.sparse_coo:
            if self._step_uncoalesced(p, grad, group):
                return
            grad = grad.coalesce()
            indices, rows = grad.indices().unbind(), grad.values()
        elif grad.layout == torch.strided:
            indices, rows = (), grad
        else:
            raise UnsupportedError(
                f"{type(self).__name__}: a gradient of {grad.layout}\n  supported: torch.sparse_coo and torch.strided"
                "\n  help: p.grad = p.grad.to_sparse()"
            )
        rows = -rows if group["maximize"] else rows
        if group["weight_decay"]:
            rows = rows.add(_rows(p, indices), alpha=group["weight_decay"])
        update = self._update(p, indices, rows, grad, state, group)
        if update is None:
            return
        direction, step_size = update
        if not indices:
            p.add_(direction, alpha=-step_size)
        elif len(indices) == 1:
            p.index_add_(0, indices[0], direction * -step_size)  # alpha= goes row by row
        else:
            p.index_put_(indices, direction * -step_size, accumulate=True)

    def _step_uncoalesced(self, p: torch.Tensor, grad: torch.Tensor, group: State) -> bool:
        """Whether the step was made from a sparse gradient as it is, rows that add up included."""
        return False

    def _update(
        self, p: torch.Tensor, at: Any, rows: torch.Tensor, grad: torch.Tensor, state: State, group: State
    ) -> tuple[torch.Tensor, float] | None:
        """(d, h), where p[at] -= h d is the step for the gradient `rows`, decay included; None where that is done."""
        raise NotImplementedError


class SGD(_ByRows):
    """torch.optim.SGD, whose momentum buffer and weight decay take sparse gradients.

    Parameters
    ----------
    params, lr, momentum, dampening, weight_decay, nesterov, maximize : as torch.optim.SGD

    Guarantees: without weight decay equal to torch.optim.SGD step for step on sparse gradients, and to the trajectory
    of their dense ones; with it, to the dense trajectory at rows that every gradient has. The momentum buffer is a
    coalesced sparse tensor with one entry for each row that ever had a gradient. Cost of a step: O(such rows * columns)
    with momentum, else O(rows of the gradient * columns). Raises ShapeError for parameters below zero,
    UnsupportedError for complex parameters and for gradients in other layouts.

    Examples
    --------
    >>> import torch
    >>> from openwork.torch.optim import SGD
    >>> p = torch.nn.Parameter(torch.ones(3, 1))
    >>> p.grad = torch.sparse_coo_tensor([[1]], [[1.0]], (3, 1))
    >>> SGD([p], lr=0.5, weight_decay=1.0).step()
    >>> p.detach()[:, 0]
    tensor([1., 0., 1.])
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ShapeError(
                f"SGD: nesterov with momentum={momentum}, dampening={dampening}\n  expected: momentum > 0, dampening 0"
            )
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"nesterov": nesterov, "maximize": maximize})

    def _step_uncoalesced(self, p: torch.Tensor, grad: torch.Tensor, group: State) -> bool:
        if group["momentum"] or group["weight_decay"]:
            return False
        p.add_(grad, alpha=group["lr"] if group["maximize"] else -group["lr"])
        return True

    def _update(
        self, p: torch.Tensor, at: Any, rows: torch.Tensor, grad: torch.Tensor, state: State, group: State
    ) -> tuple[torch.Tensor, float] | None:
        momentum, lr = group["momentum"], group["lr"]
        if not momentum:
            return rows, lr
        gradient = _with_values(grad, rows) if grad.is_sparse else rows
        buffer = state.get("momentum_buffer")
        dampened = gradient * (1 - group["dampening"]) if group["dampening"] and buffer is not None else gradient
        buffer = gradient.clone() if buffer is None else _sum(buffer * momentum, dampened)
        state["momentum_buffer"] = buffer
        change = _sum(buffer * momentum, gradient) if group["nesterov"] else buffer
        p.add_(change, alpha=-lr)
        return None


class SparseAdam(_ByRows):
    """torch.optim.SparseAdam with weight decay, whose bias correction may go by the number of steps of each row.

    Parameters
    ----------
    params, lr, betas, eps, maximize : as torch.optim.SparseAdam
    weight_decay : added to the gradient as weight_decay * parameter, at the rows of the gradient
    rowwise : whether a row has one second moment, of the mean of its squares, where it has one for each element else
    state_folder : a folder for files that the moments lie in; they have no names, and go with the optimizer
    steps : "rows" corrects a row's moments by the number of gradients that it had; "all" by the number of steps of the
        parameter, as torch.optim.SparseAdam, which makes the first steps of a rare row too long

    Guarantees: with steps="all" and no weight decay equal to torch.optim.SparseAdam step for step; rows that every
    gradient has move as with torch.optim.Adam on dense gradients, up to where eps is added. Moments are of the
    parameter's size. Cost of a step: O(rows of the gradient * columns).
    Raises ShapeError for parameters out of range, UnsupportedError as `SGD`.
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, *, steps: str = "rows", rowwise: bool = False, maximize: bool = False,
        state_folder: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        if not all(0 <= b < 1 for b in betas):
            raise ShapeError(f"SparseAdam: betas={betas}\n  expected: 0 <= beta < 1")
        if steps not in ("rows", "all"):
            raise ShapeError(f'SparseAdam: steps={steps!r}\n  expected: "rows" or "all"')
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"steps": steps, "rowwise": rowwise, "maximize": maximize}, state_folder)

    def _update(
        self, p: torch.Tensor, at: Any, rows: torch.Tensor, grad: torch.Tensor, state: State, group: State
    ) -> tuple[torch.Tensor, float]:
        if not state:
            sizes = p.shape[: grad.sparse_dim() if grad.is_sparse else 1]
            by_rows = group["steps"] == "rows"
            state["step"] = self._zeros(sizes, p, torch.int64) if by_rows else torch.zeros((), dtype=torch.int64)
            state["exp_avg"] = self._zeros(p.shape, p)
            state["exp_avg_sq"] = self._zeros(_state_shape(p, grad, group["rowwise"]), p)
        first, second = group["betas"]
        counts = state["step"] = state["step"].to(p.device if group["steps"] == "rows" else "cpu")  # no device is asked
        taken = _add_step(counts, at if counts.ndim else ())
        m = _rows(state["exp_avg"], at).lerp_(rows, 1 - first)
        v = _rows(state["exp_avg_sq"], at).mul_(second)
        if group["rowwise"]:
            v.add_(_squares(rows, p, grad), alpha=1 - second)
        else:
            v.addcmul_(rows, rows, value=1 - second)
        _set_rows(state["exp_avg"], at, m)
        _set_rows(state["exp_avg_sq"], at, v)
        direction = m / v.sqrt().add_(group["eps"])
        if isinstance(taken, int):
            return direction, group["lr"] * math.sqrt(1 - second**taken) / (1 - first**taken)
        n = taken.reshape(taken.shape + (1,) * (rows.ndim - taken.ndim))  # 1 - b**n is -expm1(n log b)
        correction = (n * _log(second)).expm1_().neg_().sqrt_().div_((n * _log(first)).expm1_())
        return direction.mul_(correction), -group["lr"]


class Adagrad(_ByRows):
    """torch.optim.Adagrad, whose weight decay takes sparse gradients.

    Parameters
    ----------
    params, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize : as torch.optim.Adagrad
    rowwise : whether a row has one sum, of the means of its squares, where it has one for each element else
    state_folder : a folder for a file that the sums lie in; it has no name, and goes with the optimizer

    Guarantees: without weight decay equal to torch.optim.Adagrad step for step, and to the trajectory of the dense
    gradients; with it, to that at rows that every gradient has. The sums are of the parameter's size. Cost of a step:
    O(rows of the gradient * columns). Raises ShapeError for parameters below zero, UnsupportedError as `SGD`.
    """

    def __init__(
        self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, *, rowwise: bool = False, maximize: bool = False,
        state_folder: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        defaults = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "rowwise": rowwise}
        super().__init__(
            params,
            defaults | {"initial_accumulator_value": initial_accumulator_value, "maximize": maximize},
            state_folder,
        )

    def _update(
        self, p: torch.Tensor, at: Any, rows: torch.Tensor, grad: torch.Tensor, state: State, group: State
    ) -> tuple[torch.Tensor, float]:
        if not state:
            state["step"] = torch.tensor(0)
            state["sum"] = self._zeros(_state_shape(p, grad, group["rowwise"]), p)
            if group["initial_accumulator_value"]:
                state["sum"].fill_(group["initial_accumulator_value"])
        state["step"] += 1
        total = _rows(state["sum"], at) + (_squares(rows, p, grad) if group["rowwise"] else rows * rows)
        _set_rows(state["sum"], at, total)
        step_size = group["lr"] / (1 + (int(state["step"]) - 1) * group["lr_decay"])
        return rows / total.sqrt_().add_(group["eps"]), step_size


def clip_grad_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor], max_norm: float, norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Scale gradients, dense and sparse, so that their common norm is at most `max_norm`; the norm that it was.

    As torch.nn.utils.clip_grad_norm_ of the dense gradients; a sparse one stays sparse, and is coalesced first, since
    the norm of entries that add up is not that of their sum.
    Raises RuntimeError for a norm that is not finite, where asked to.
    """
    grads = _grads(parameters)
    norms = [torch.linalg.vector_norm(v, norm_type) for v in grads if v.numel()]
    if not norms:
        return torch.tensor(0.0)
    total = torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]), norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(f"clip_grad_norm_: the norm of order {norm_type} of the gradients is {float(total)}")
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for v in grads:
        v.mul_(factor.to(v.device))
    return total


def clip_grad_value_(parameters: torch.Tensor | Iterable[torch.Tensor], clip_value: float) -> None:
    """Bring every element of gradients, dense and sparse, into -clip_value to clip_value; sparse ones are coalesced."""
    for v in _grads(parameters):
        v.clamp_(-clip_value, clip_value)


def _grads(parameters: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The elements of every gradient, as they are stored: sparse ones after coalescing."""
    result = []
    for p in [parameters] if isinstance(parameters, torch.Tensor) else parameters:
        if p.grad is not None and p.grad.layout == torch.sparse_coo:
            p.grad = p.grad.coalesce()
            result.append(p.grad.detach()._values())
        elif p.grad is not None:
            result.append(p.grad.detach() if p.grad.layout == torch.strided else p.grad.detach().values())
    return result


def _with_values(grad: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.sparse_coo_tensor(
        grad.indices(), values.contiguous(), grad.shape, is_coalesced=True, check_invariants=False
    )
    return result


def _row_rank(p: torch.Tensor, grad: torch.Tensor) -> int:
    """How many dimensions number the rows of a parameter: those that its gradient stores by coordinates, or one."""
    return min(int(p.ndim), int(grad.sparse_dim()) if grad.is_sparse else 1)


def _state_shape(p: torch.Tensor, grad: torch.Tensor, rowwise: bool) -> tuple[int, ...]:
    """The shape of a parameter's state: of an element each, or of a row each."""
    rank = _row_rank(p, grad)
    return (*p.shape[:rank], *(1,) * (p.ndim - rank)) if rowwise else tuple(p.shape)


def _squares(rows: torch.Tensor, p: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """The mean of the squares of each of a gradient's rows."""
    inner = p.ndim - _row_rank(p, grad)
    return (rows * rows).mean(tuple(range(-inner, 0)), keepdim=True) if inner else rows * rows


def _add_step(counts: torch.Tensor, at: Any) -> torch.Tensor | int:
    """The numbers of steps, one more at `at`, or one more where one number is all; they are kept, too."""
    if not counts.ndim:
        return int(counts.add_(1))
    taken = _rows(counts, at).add_(1)
    _set_rows(counts, at, taken)
    return taken


@cache
def _log(x: float) -> torch.Tensor:
    """log(x) as a float64 tensor of no dimensions, which makes products with integers float64."""
    return torch.tensor(math.log(x) if x else -math.inf, dtype=torch.float64)


def _rows(x: torch.Tensor, at: Any) -> torch.Tensor:
    """The rows at `at`; all of them, not copied, where it names none."""
    if not at:
        return x
    return x.index_select(0, at[0]) if len(at) == 1 else x[at]


def _set_rows(x: torch.Tensor, at: Any, rows: torch.Tensor) -> None:
    if not at:
        if x is not rows:
            x.copy_(rows)
    elif len(at) == 1:
        x.index_copy_(0, at[0], rows)
    else:
        x[at] = rows


def _sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x + y; sparse where both are, each row once."""
    total = y + x if x.is_sparse and not y.is_sparse else x + y
    return total.coalesce() if total.is_sparse else total
