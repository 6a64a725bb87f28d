"""docs/torch-names.md: every public name of torch.Tensor, torch.sparse and torch.masked, and what a Tensor, and a
masked tensor, answers to it.

python tools/torch_names.py            # write it
python tools/torch_names.py --check    # exit with 1 where it differs
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import openwork as ow
from openwork.tables import TORCH
from openwork.torch.functions.call import FUNCTIONS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "torch-names.md"
VERSION = torch.__version__.partition("+")[0]
HEAD = f"""# torch's names

Made by `python tools/torch_names.py` with torch {VERSION}: every public name of `torch.Tensor`, `torch.sparse` and
`torch.masked`, and what it is on a Tensor, or a masked tensor, over torch buffers. *There* is an attribute, or a method
with torch's arguments, which raises UnsupportedError for those that are not supported; its operation is named where
that is a function of the namespace. What is not there raises AttributeError, for the reason given. Which arguments and
layouts are tried, and what refuses: [torch.md](torch-functions.md#the-matrix).

"""

REASONS: dict[str, str] = {
    "memory as strides describe it, which sparse formats have not: to_dense(), or values": (
        "as_strided as_strided_ as_strided_scatter const_data_ptr data_ptr dim_order is_contiguous "
        "is_set_to new_empty_strided resize_ resize_as resize_as_ resize_as_sparse_ set_ "
        "sparse_resize_and_clear_ storage storage_offset storage_type untyped_storage "
        "unsafe_split_with_sizes narrow_copy slice_inverse to_padded_tensor hash_tensor record_stream"
    ),
    "dense factorizations and their legacy names: to_dense(), or openwork.linalg": (
        "cholesky cholesky_inverse cholesky_solve eig geqrf inverse lstsq lu lu_solve matrix_exp orgqr "
        "ormqr pinverse qr svd symeig triangular_solve"
    ),
    "random numbers in place, of every element: of values, or openwork.random": (
        "bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ "
        "reinforce uniform_"
    ),
    "a Python function of each element: of values": ("apply_ map_ map2_"),
    "counts of slices, runs and bins: to_dense()": ("bincount histogram mode unique_consecutive"),
    "quantized numbers are no dtype": (
        "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
        "q_zero_point qscheme"
    ),
    "devices that kernels do not run on": (
        "ipu is_ipu is_maia is_mps is_mtia is_vulkan is_xla is_xpu mtia xpu to_mkldnn"
    ),
    "Fourier transforms": ("istft stft"),
    "places that are reduced other than by sums: A.at[key].min(v), max(v), mul(v)": (
        "index_reduce index_reduce_ scatter_reduce scatter_reduce_"
    ),
    "fills and steps of what is not specified: to_dense()": ("fill_diagonal_"),
    "torch's own class and legacy: of values": (
        "as_subclass grad_dtype index is_distributed module_load name new new_empty new_tensor output_nr "
        "type volatile register_post_accumulate_grad_hook"
    ),
    "to_numpy(), which says so where it makes a dense array": ("numpy"),
}
"""Names that a Tensor has not, by the reason."""

SPARSE: dict[str, str] = {
    **dict.fromkeys(("addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"), "there"),
    "spdiags": "makes a torch tensor: `ow.diags_array` makes a Tensor",
    "spsolve": "there: `ow.linalg.solve`",
    "as_sparse_gradcheck": "not there: `openwork.torch.gradcheck`, at stored elements",
    "check_sparse_tensor_invariants": "a switch of torch's: `check_invariants=` of the constructors, `t.check()`",
    "semi_structured": "not there: the format `nm(2, 4)`",
    "to_sparse_semi_structured": "not there: `asformat('nm(2, 4)')`",
    "SparseSemiStructuredTensor": "not there: the format `nm(2, 4)`",
    "SparseSemiStructuredTensorCUSPARSELT": "not there: the format `nm(2, 4)`",
    "SparseSemiStructuredTensorCUTLASS": "not there: the format `nm(2, 4)`",
}  # fmt: skip
"""torch.sparse's functions and classes."""

MASKED: dict[str, str] = {
    "MaskedTensor": "there: `ow.masked.MaskedTensor`, no subclass of torch.Tensor",
    "is_masked_tensor": "not there: `isinstance(x, ow.masked.MaskedTensor)`, as torch's asks for its own class",
    "maskedtensor": "torch's module",
}  # fmt: skip
"""What torch.masked has that openwork.masked has not under the same name."""

MASKED_REASONS: dict[str, str] = {
    "products and determinants of stacks and sums: m @ n, m + n @ k, ow.masked.einsum, or filled(0)": (
        "addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ corrcoef cov cross det dist dot inner "
        "kron logdet matrix_power slogdet smm solve sspaddmm allclose histc renorm renorm_"
    ),
    "buffers of a layout: of the Tensors get_data() and get_mask()": (
        "ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced row_indices sparse_dim "
        "sparse_mask sparse_resize_ to_sparse_bsc"
    ),
    "facts of one buffer: of values, or of get_data()": (
        "cpu cuda element_size get_device grad_fn is_complex is_conj is_cpu is_cuda is_floating_point is_inference "
        "is_leaf is_meta is_mkldnn is_neg is_nonzero is_pinned is_quantized is_same_size is_shared is_signed itemsize "
        "nbytes pin_memory register_hook resize retain_grad retains_grad share_memory_ stride tolist"
    ),
    "writes at places: m[key] = value": (
        "diagonal_scatter index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ "
        "masked_scatter masked_scatter_ put put_ scatter scatter_ scatter_add scatter_add_ select_scatter slice_scatter"
    ),
    "orders and running results that torch's masked tensors have not either: of compressed(), or of filled(value)": (
        "cummax cummin kthvalue logcumsumexp masked_select msort nonzero_static"
    ),
    "other spellings: m.T, m.swapaxes(-2, -1), conj()": ("H adjoint mH"),
    "two results, other shapes and new tensors: m.map(function), ow.as_masked_tensor": (
        "diag_embed frexp new_full new_ones new_zeros prelu sum_to_size unary"
    ),
}
"""Names that a masked tensor has not, by the reason, beside those that a Tensor has not."""


def sample() -> ow.Tensor:
    """A Tensor over torch buffers in COO, which has all of torch's accessors."""
    return ow.asarray(torch.eye(2), format="coo")


def tensor_names() -> dict[str, str]:
    """The public names of torch's tensors, with the answer to each; KeyError for one that has none."""
    t, refused = sample(), {name: reason for reason, names in REASONS.items() for name in names.split()}
    found = {}
    for name in sorted(n for n in dir(torch.Tensor) if not n.startswith("_")):
        found[name] = _there(name) if _has(t, name) else f"not there: {refused[name]}"
    return found


def masked_names() -> dict[str, str]:
    """The public names of torch.masked, with the answer to each."""
    module: Any = torch.masked
    own = {n: f"there: `ow.masked.{n}`" for n in ow.masked.__all__}
    return {n: MASKED[n] if n in MASKED else own[n] for n in sorted(dir(module)) if not n.startswith("_")}


def masked_tensor_names() -> dict[str, str]:
    """The public names of torch's masked tensors, with the answer to each; KeyError for one that has none."""
    m = ow.as_masked_tensor(torch.eye(2), torch.eye(2) > 0)
    refused = {n: reason for reasons in (REASONS, MASKED_REASONS) for reason, ns in reasons.items() for n in ns.split()}
    names = sorted(n for n in dir(torch.masked.MaskedTensor) if not n.startswith("_"))
    answers = {n: "there" + ", in place" * n.endswith("_") for n in names if _has(m, n)}
    return {n: answers[n] if n in answers else f"not there: {refused[n]}" for n in names}


def _has(t: Any, name: str) -> bool:
    try:
        getattr(t, name)
    except AttributeError:
        return False
    return True


def _there(name: str) -> str:
    base = name.removesuffix("_")
    operation = TORCH.get(base) if base not in FUNCTIONS or base in TORCH else None
    if name == "chalf":
        return "there, and refuses: complex32 is no dtype"
    in_place = ", in place" if name.endswith("_") else ""
    return f"there: `ow.{operation}`{in_place}" if operation and hasattr(ow, operation) else f"there{in_place}"


def sparse_names() -> dict[str, str]:
    """The public functions and classes of torch.sparse, with the answer to each."""
    module: Any = torch.sparse
    names = [n for n in dir(module) if not n.startswith("_") and n not in ("torch", "Any", "TYPE_CHECKING", "Tensor")]
    own = [n for n in names if getattr(getattr(module, n), "__module__", "torch.sparse").startswith("torch")]
    return {n: SPARSE[n] for n in own if n in SPARSE or not isinstance(getattr(module, n), type | tuple)}


def page() -> str:
    """The text of docs/torch-names.md."""
    parts = [HEAD]
    tables = (
        ("torch.Tensor", tensor_names()), ("torch.sparse", sparse_names()), ("torch.masked", masked_names()),
        ("torch.masked.MaskedTensor", masked_tensor_names()),
    )  # fmt: skip
    for title, names in tables:
        there = sum(answer.startswith("there") for answer in names.values())
        rows = "".join(f"| `{name}` | {answer} |\n" for name, answer in names.items())
        parts.append(f"## {title}\n\n{there} of {len(names)} are there.\n\n| name | answer |\n| --- | --- |\n{rows}\n")
    return "".join(parts).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with --check compare it."""
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
