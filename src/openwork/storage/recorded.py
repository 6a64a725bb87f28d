"""A torch tensor -> whether torch records what happens to it (graph, tangent, transform), and its bare memory.

torch is never imported here: a tensor is there only where it is.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from ..errors import UnsupportedError

__all__ = [
    "bare", "has_memory", "in_transform", "is_batched", "is_dual", "is_plain", "is_recorded", "is_transformed",
    "of_recording", "outside", "refuse_recorded", "refuse_tracer", "with_memory",
]  # fmt: skip


def with_memory(x: Any) -> Any:
    """An array with memory: zeros for one of torch's zero tensors, which its derivatives return without memory."""
    if isinstance(x, np.ndarray):
        return x
    return x.new_zeros(x.shape) if x._is_zerotensor() else x


def is_recorded(x: Any) -> bool:
    """Whether torch records operations on a tensor: for a gradient, a tangent or a transform."""
    torch = sys.modules["torch"]
    if x.requires_grad and torch.is_grad_enabled():
        return True
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        return True
    return torch.autograd.forward_ad._current_level >= 0 and is_dual(x)


def of_recording(x: Any) -> Any:
    """A torch tensor -> itself, or detached where it requires a gradient and torch does not record, as in `no_grad`.

    A view that torch makes of a leaf there says that it requires a gradient, which reaches neither.
    """
    return x.detach() if x.requires_grad and not is_recorded(x) else x


def is_transformed(x: Any) -> bool:
    """Whether a torch tensor belongs to a transform of `torch.func`."""
    return bool(sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(x))


def is_dual(x: Any) -> bool:
    """Whether a torch tensor carries a tangent."""
    torch = sys.modules["torch"]
    forward = torch.autograd.forward_ad
    if forward._current_level < 0 or not torch._C._is_fwd_grad_enabled():
        return False
    if x.layout is not torch.strided:
        return False  # torch gives sparse tensors none, and refuses to look
    return forward.unpack_dual(x).tangent is not None


def is_plain(x: Any) -> bool:
    """Whether a buffer is one of memory, and what is made of it now may be kept: not in a transform of torch's."""
    if isinstance(x, np.ndarray):
        return True
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled() or is_transformed(x) or is_dual(x):
        return False
    return torch._C._functorch.maybe_current_level() is None


def in_transform() -> bool:
    """Whether a transform of `torch.func` runs; torch is there."""
    return sys.modules["torch"]._C._functorch.maybe_current_level() is not None


class outside(ContextDecorator):
    """A context outside all transforms of `torch.func`: inside one, every tensor that torch makes belongs to it."""

    __slots__ = ("_cleared",)

    def __enter__(self) -> None:
        torch = sys.modules.get("torch")
        self._cleared: Any = None
        if torch is not None and torch._C._functorch.maybe_current_level() is not None:
            self._cleared = torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack()
            self._cleared.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._cleared is not None:
            self._cleared.__exit__(*error)

    def _recreate_cm(self) -> outside:
        return outside()


def is_batched(x: Any) -> bool:
    """Whether a torch tensor is batched by `torch.func.vmap`."""
    return bool(sys.modules["torch"]._C._functorch.is_batchedtensor(x))


def bare(x: Any, *, any_of_batch: bool = False, all_of_batch: bool = False) -> Any:
    """A torch tensor's own memory, without graph, tangent and transforms of `torch.func`.

    A batch has none: UnsupportedError, but for its first element (`any_of_batch`) or all of it, flat (`all_of_batch`).
    """
    torch = sys.modules["torch"]
    forward, transforms = torch.autograd.forward_ad, torch._C._functorch
    if forward._current_level < 0 and not transforms.is_functorch_wrapped_tensor(x):
        if transforms.maybe_current_level() is None:
            return with_memory(x.detach())
        with outside():
            return with_memory(x.detach())
    with outside():
        while transforms.is_functorch_wrapped_tensor(x):
            inner = transforms.get_unwrapped(x)
            if transforms.is_batchedtensor(x):
                if not any_of_batch and not all_of_batch:
                    raise UnsupportedError(
                        "an operation that depends on values, of a batch of them inside a transform of torch.func"
                        "\n  supported: vmap outermost of all, or over what the operation is linear in"
                    )
                inner = inner.reshape(-1) if all_of_batch else inner.select(transforms.maybe_get_bdim(x), 0)
            x = inner
        x = with_memory(x.detach())
        return forward.unpack_dual(x).primal if forward._current_level >= 0 else x


def has_memory(x: Any) -> bool:
    """Whether a torch tensor has memory of its own: FakeTensor, FunctionalTensor and other stand-ins have none."""
    torch = sys.modules["torch"]
    if type(x).__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        return True
    memory = x.untyped_storage()
    try:
        return bool(memory.device.type != "meta" and (memory.data_ptr() or not x.numel()))
    except RuntimeError:  # torch's error of FunctionalTensor
        return False


def refuse_tracer(*, before_dispatch: bool = False) -> None:
    """Raise where a tracer of torch below Python runs, as in `make_fx`, `FakeTensorMode` and `torch.jit.trace`.

    It sees the memory that a result gets, and no kernel that writes to it. Those that trace before dispatch have a mode
    of functions, which is less to ask for, but none inside a function that modes have seen: `before_dispatch` asks.
    """
    native = sys.modules["torch"]._C
    if native._len_torch_dispatch_stack():
        keys = native._TorchDispatchModeKey
        for key in (keys.PROXY, keys.FUNCTIONAL, keys.FAKE):
            if (mode := native._get_dispatch_mode(key)) is not None:
                raise _inside(type(mode).__name__)
    if native._is_tracing():
        raise _inside("torch.jit.trace")
    may_come_before = before_dispatch or native._len_torch_function_stack()
    if may_come_before and native._dispatch_tls_is_dispatch_key_included(native.DispatchKey.PreDispatch):
        raise _inside("a tracer before dispatch")


def _inside(tracer: str) -> UnsupportedError:
    return UnsupportedError(
        f"a call of Tensors inside {tracer}: it records the memory of results, and no kernel that writes to it"
        "\n  help: torch.compile, and torch.export.export(..., strict=True), take calls of Tensors"
    )


def refuse_recorded(x: Any) -> None:
    """Raise UnsupportedError for a torch tensor that is recorded: its gradient would miss the operation."""
    if not isinstance(x, np.ndarray) and is_recorded(x) and (x.is_floating_point() or x.is_complex()):
        raise UnsupportedError(
            "this operation has no gradient, and an operand requires one\n  help: detach() it, or use torch.no_grad()"
        )
