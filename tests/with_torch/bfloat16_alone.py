"""Run where ml_dtypes cannot be imported: operations over torch's bfloat16 against those of float32; prints failures."""

from __future__ import annotations

import copy
import pickle
import sys
import tempfile
from collections.abc import Callable
from typing import Any

sys.modules["ml_dtypes"] = None  # type: ignore[assignment]
import torch  # noqa: E402

import openwork as ow  # noqa: E402
from openwork.errors import DTypeError  # noqa: E402

D = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 4.0]])
E = D + torch.tensor([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])

OPERATIONS: dict[str, Callable[[Any, Any, torch.Tensor], Any]] = {
    "A @ B": lambda A, B, x: A @ B,
    "A @ x": lambda A, B, x: A @ x,
    "x @ A": lambda A, B, x: x @ A,
    "A @ v": lambda A, B, x: A @ x[0],
    "A + B": lambda A, B, x: A + B,
    "A * B": lambda A, B, x: A * B,
    "A * x": lambda A, B, x: A * x,
    "A * 2.5": lambda A, B, x: A * 2.5,
    "A / 2": lambda A, B, x: A / 2,
    "(A + 1) @ x": lambda A, B, x: (A + 1) @ x,
    "where": lambda A, B, x: ow.where(A > 0, A, B),
    "concat": lambda A, B, x: ow.concat([A, B]),
    "stack": lambda A, B, x: ow.stack([A, B]),
    "kron": lambda A, B, x: ow.kron(A, B),
    "outer": lambda A, B, x: ow.outer(A[0], B[0]),
    "einsum": lambda A, B, x: ow.einsum("ij,jk,kl->il", A, B, A),
    "einsum of vectors": lambda A, B, x: ow.einsum("i,i->", A[1], B[1]),
    "tensordot": lambda A, B, x: ow.tensordot(A, B),
    "vecdot": lambda A, B, x: ow.vecdot(A, B),
    "evaluate": lambda A, B, x: ow.evaluate("C[i,j] = A[i,j] * B[i,j]", A=A, B=B),
    "lazy": lambda A, B, x: (ow.lazy(A) * 2 + B).compute(),
    "A[1:]": lambda A, B, x: A[1:],
    "A[:, 1]": lambda A, B, x: A[:, 1],
    "A[[2, 0]]": lambda A, B, x: A[[2, 0]],
    "A[A > 1]": lambda A, B, x: A[A > 1],
    "narrow": lambda A, B, x: torch.narrow(A, 0, 1, 2),
    "select": lambda A, B, x: torch.select(A, 0, 1),
    "index_select": lambda A, B, x: torch.index_select(A, 0, torch.tensor([0, 2])),
    "reshape": lambda A, B, x: A.reshape((1, 9)),
    "flip": lambda A, B, x: ow.flip(A),
    "tril": lambda A, B, x: ow.tril(A),
    "diagonal": lambda A, B, x: ow.diagonal(A),
    "pad": lambda A, B, x: ow.pad(A, 1),
    "tile": lambda A, B, x: ow.tile(A, (2, 2)),
    "sum": lambda A, B, x: A.sum(),
    "sum(0)": lambda A, B, x: A.sum(0),
    "mean": lambda A, B, x: A.mean(1),
    "amax": lambda A, B, x: torch.amax(A, 1),
    "argmax": lambda A, B, x: ow.argmax(A, axis=1),
    "softmax": lambda A, B, x: ow.softmax(A),
    "sort": lambda A, B, x: ow.sort(A),
    "topk": lambda A, B, x: ow.topk(A, 2),
    "median": lambda A, B, x: ow.median(A),
    "quantile": lambda A, B, x: ow.quantile(A, 0.5, axis=1),
    "unique": lambda A, B, x: ow.unique_values(A),
    "nonzero": lambda A, B, x: ow.nonzero(A.detach()),
    "sin": lambda A, B, x: torch.sin(A),
    "at.set": lambda A, B, x: A.at[0].set(1),
    "at.add": lambda A, B, x: A.at[0, 1].add(1.5),
    "at.mul": lambda A, B, x: A.at[2, 2].mul(1.5),
    "A[0] = 1": lambda A, B, x: set_row(A.detach().clone()),
    "A *= 2": lambda A, B, x: A.detach().clone().__imul__(2),
    "sparse_mask": lambda A, B, x: ow.sparse_mask(B, A),
    "sddmm": lambda A, B, x: ow.sddmm(A, x, x),
    "masked": lambda A, B, x: ow.masked_tensor(A, ow.pattern(A)).sum(0).filled(0),
    "deepcopy": lambda A, B, x: copy.deepcopy(A),
    "pickle": lambda A, B, x: pickle.loads(pickle.dumps(A.detach())),
    "to_torch": lambda A, B, x: ow.asarray(A.detach().to_torch()),
    **{
        f"asformat({f})": lambda A, B, x, f=f: A.asformat(f)
        for f in ("csr", "csc", "coo", "dense", "bsr(2, 2)", "dia", "ell(3)", "bitmap")
    },
}


def set_row(t: Any) -> Any:
    t[0] = 1.0
    return t


def dense(x: Any) -> list[torch.Tensor]:
    if isinstance(x, tuple | list):
        return [v for y in x for v in dense(y)]
    return [(x.to_dense() if isinstance(x, ow.Tensor) else x).detach()]


def compare(name: str, format: str, recorded: bool) -> None:
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        A, B = (ow.asarray(x.to(dtype), format=f) for x, f in ((D, format), (E, "csr")))
        A = A.requires_grad_() if recorded else A
        for _ in range(3):  # the second and the third call take other ways
            result = OPERATIONS[name](A, B, E.to(dtype))
        repr(result), str(result)
        found.append(dense(result))
    for got, want in zip(*found, strict=True):
        if want.is_floating_point():
            assert got.dtype == torch.bfloat16, got.dtype
        torch.testing.assert_close(got.double(), want.double(), rtol=2e-2, atol=2e-2)


def main() -> None:
    others = [(f, r) for f in ("coo", "dia", "coo(nonunique, unordered)") for r in (False, True)] * ("all" in sys.argv)
    for name in OPERATIONS:
        for format, recorded in (("csr", False), ("csr", True), ("bsr(2, 2)", False), ("dense", True), *others):
            try:
                compare(name, format, recorded)
            except Exception as error:
                print(f"{name}, {format}, recorded={recorded}: {type(error).__name__}: {str(error)[:200]}")
    A = ow.asarray(D.bfloat16(), format="csr")
    assert A[1, 2].item() == 3.0
    assert A.tolist() == D.tolist()
    assert float(ow.finfo(torch.bfloat16).eps) == 2.0**-7
    assert ow.iso(A, 2).to_dense().tolist() == ((D != 0) * 2.0).tolist()
    with torch.autocast("cpu"):
        F = ow.asarray(D, format="csr")
        assert (F @ F).dtype == torch.bfloat16
        product = (F @ F).to_dense().float()
    torch.testing.assert_close(product, D @ D)
    files = tempfile.mkdtemp()
    writing = [lambda e=e: ow.write(f"{files}/a{e}", A) for e in (".npz", ".mtx", ".tns", ".ow", ".h5")]
    for asked in (A.to_numpy, lambda: ow.asarray(A, like="numpy"), *writing):
        try:
            asked()
        except DTypeError as error:
            message = str(error)
        else:
            message = "none"
        if "pip install ml_dtypes" not in message:
            print(f"an array of NumPy's without ml_dtypes: {message}")


main()
