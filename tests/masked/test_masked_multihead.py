"""nn.MultiheadAttention of masked tensors: torch's attention of what is specified."""

import pytest

import openwork as ow

torch = pytest.importorskip("torch")


def layer(**options) -> torch.nn.MultiheadAttention:
    torch.manual_seed(3)
    return torch.nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)


def test_elements_that_are_missing_contribute_nothing() -> None:
    for training in (False, True):
        attention = layer(batch_first=True).train(training)
        x = torch.randn(2, 5, 8, dtype=torch.float64)
        bits = torch.rand(2, 5, 8) > 0.3
        m = ow.masked_tensor(x, bits)
        output, weights = attention(m, m, m)
        dense = torch.where(bits, x, 0)
        expected, expected_weights = attention(dense, dense, dense)
        assert torch.allclose(output.to_tensor(0), expected)
        assert torch.allclose(weights.to_tensor(0), expected_weights)


def test_positions_that_are_missing_are_no_keys_and_no_queries() -> None:
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    there = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    m = ow.masked_tensor(x, there[:, :, None].expand_as(x).contiguous())
    for options in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False}):
        attention = layer(batch_first=True, **options)
        for average in (True, False):
            output, weights = attention(m, m, m, average_attn_weights=average)
            expected, expected_weights = attention(x, x, x, key_padding_mask=~there, average_attn_weights=average)
            bits = output.get_mask().to_dense()
            assert torch.equal(bits, there[:, :, None].expand_as(x))
            assert torch.allclose(output.to_tensor(0), expected * bits)
            asks = there[:, :, None] if average else there[:, None, :, None]
            assert torch.allclose(weights.to_tensor(0), expected_weights * asks)
        output, weights = attention(m, x, x, need_weights=False)
        assert weights is None
        assert torch.allclose(output.to_tensor(0), attention(x, x, x, need_weights=False)[0] * bits)
    first = m[0]
    output, weights = attention(first, first, first)
    assert torch.allclose(output.to_tensor(0), expected[0] * bits[0])
    assert weights.shape == (5, 5)


def test_masks_of_torchs_and_queries_that_see_no_key() -> None:
    attention = layer()
    x = torch.randn(4, 3, 8, dtype=torch.float64, requires_grad=True)  # length, batch
    there = torch.ones(4, 3, dtype=torch.bool)
    there[:, 1] = False  # a sequence without a position
    there[0, 0] = False
    m = ow.as_masked_tensor(x, there[..., None].expand_as(x).contiguous())
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    padding = torch.zeros(3, 4, dtype=torch.bool)
    padding[2, 3] = True
    for mask in (
        causal,
        torch.zeros(4, 4, dtype=torch.float64).masked_fill(causal, -torch.inf),
        causal.expand(6, 4, 4),
    ):
        output, _ = attention(m, m, m, attn_mask=mask, key_padding_mask=padding if mask.dtype == torch.bool else None)
        bits = output.get_mask().to_dense()[..., 0]
        assert bits.tolist() == there.tolist()
    output, _ = attention(m, m, m, attn_mask=causal, key_padding_mask=padding)
    expected = attention(x, x, x, attn_mask=causal, key_padding_mask=padding)[0]
    assert torch.allclose(output.to_tensor(0)[:, 2], expected[:, 2])
    output.sum().to_tensor(0).backward()
    assert bool(torch.isfinite(x.grad).all())
    assert not bool(x.grad[:, 1].any())
    assert all(bool(torch.isfinite(p.grad).all()) for p in attention.parameters())


def test_truth_values_as_masks_of_the_function() -> None:
    """The layer turns them into numbers before; the function takes them as they are."""
    attention = layer()
    x = torch.randn(4, 3, 8, dtype=torch.float64)
    m = ow.masked_tensor(x, torch.ones(4, 3, 8, dtype=torch.bool))
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    padding = torch.zeros(3, 4, dtype=torch.bool)
    padding[2, 3] = True
    weights = (attention.in_proj_weight, attention.in_proj_bias, None, None, False, 0.0)
    weights += (attention.out_proj.weight, attention.out_proj.bias)
    for masks in ({"attn_mask": causal}, {"key_padding_mask": padding}, {"attn_mask": causal.expand(6, 4, 4)}):
        function = torch.nn.functional.multi_head_attention_forward
        for got, want in zip(*(function(y, y, y, 8, 2, *weights, **masks) for y in (m, x)), strict=True):
            assert torch.allclose(got.to_tensor(0), want)
