"""Masks of bool that store False, as blocks do: what is not True is not seen, in every format and when compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import openwork as ow
from openwork.nn import SparseAttention, attend

FORMATS = [
    "csr", "coo", "csc", "dcsr", "bsr(2, 2)", "bsr(3, 2)", "bsr(4, 4)", "bsc(2, 2)", "dia", "bitmap", "ell(3)", "dense",
    "(i, j) -> (i : compressed, j : dense)", "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)",
]  # fmt: skip


def seen() -> torch.Tensor:
    mask = torch.zeros(6, 6, dtype=torch.bool)
    mask[[0, 1, 2, 3, 4, 5, 0], [0, 3, 2, 5, 1, 0, 4]] = True
    return mask


def operands(*lead: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(*lead, 6, 4) for _ in range(3)]


def expected(mask: torch.Tensor, x: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(*x, attn_mask=mask)


@pytest.mark.thin(9)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_stored_false_is_not_seen(format: str, library: str) -> None:
    mask = ow.asarray(ow.asarray(seen(), format=format), like=library)
    x = operands(2)
    for _ in range(2):
        torch.testing.assert_close(attend(mask, *x), expected(seen(), x))
    lower = seen().tril() | torch.eye(6, dtype=torch.bool)
    filled = ow.asarray(ow.asarray(seen() | torch.eye(6, dtype=torch.bool), format=format), like=library)
    torch.testing.assert_close(attend(filled, *x, is_causal=True), expected(lower, x))


def test_explicit_false_in_rows_and_masks_that_change() -> None:
    x = operands()
    mask = ow.asarray(torch.ones(6, 6), format="csr") > 0
    mask = mask.with_values(seen().reshape(-1).clone())
    assert mask.nse == 36
    torch.testing.assert_close(attend(mask, *x), expected(seen(), x))
    mask.values[7] = True
    other = seen()
    other[1, 1] = True
    torch.testing.assert_close(attend(mask, *x), expected(other, x))
    same = mask.with_values(torch.ones(36, dtype=torch.bool))
    torch.testing.assert_close(attend(same, *x), expected(torch.ones(6, 6, dtype=torch.bool), x))


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", ["bsr(2, 2)", "csr", "bitmap"])
def test_compiled_attention_sees_what_is_true(format: str) -> None:
    mask, x = ow.asarray(seen(), format=format), operands(2)
    compiled = torch.compile(lambda *x: attend(mask, *x), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*x), expected(seen(), x))


def test_stacks_of_masks_and_layers() -> None:
    both: Any = torch.stack([seen(), seen().T])
    x = operands(2)
    stacked = ow.asarray(both, format="(b, i, j) -> (b : dense, i : compressed, j : dense)")
    torch.testing.assert_close(attend(stacked, *x), expected(both, x))
    layer = SparseAttention(4, 2, batch_first=True)
    y = operands(3)[0]
    rows, blocks = (layer(y, y, y, attn_mask=ow.asarray(seen(), format=f))[0] for f in ("csr", "bsr(2, 2)"))
    torch.testing.assert_close(blocks, rows)


def test_torch_s_function_names_ours() -> None:
    q = torch.ones(3, 2)
    with pytest.raises(ow.UnsupportedError, match=r"help: openwork\.nn\.attend\(mask, queries, keys, values\)"):
        torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=ow.asarray(torch.eye(3), format="csr"))
