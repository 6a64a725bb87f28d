"""Attention at the elements of sparse masks: equal to torch's with the dense mask, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional as F

import openwork as ow
from openwork.nn import SparseAttention, attend, attend_operator, densify, prune

MASKS = {
    "band": torch.ones(8, 8).tril(1).triu(-2),
    "causal": torch.ones(8, 8).tril(),
    "blocks": torch.eye(2).repeat_interleave(4, 0).repeat_interleave(4, 1),
    "random": (torch.arange(64).reshape(8, 8) * 7 % 5 < 2).float(),
}
FORMATS = {"band": "dia", "causal": "csr", "blocks": "bsr(4, 4)", "random": "coo"}


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, dtype=torch.float64, generator=generator).sub_(0.5).requires_grad_()


def dense_attention(mask: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask > 0)


@pytest.mark.ci
def test_batches_heads_and_masks() -> None:
    for name, mask in MASKS.items():
        given = [numbers(2, 3, 8, 5), numbers(1, 3, 8, 5, seed=1), numbers(8, 4, seed=2)]
        for format in {"csr", FORMATS[name]}:
            got = attend(ow.asarray(mask).asformat(format), *given)
            want = dense_attention(mask, *given)
            torch.testing.assert_close(got, want)
            for a, b in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (got, want)), strict=True):
                torch.testing.assert_close(a, b)
    t = ow.asarray(MASKS["random"][:3, :4] * (torch.arange(3) != 1)[:, None]).asformat("csr")
    small = [numbers(2, 3, 2), numbers(2, 4, 2, seed=1), numbers(2, 4, 3, seed=2)]
    assert not attend(t, *small)[:, 1].any()
    assert torch.autograd.gradcheck(lambda *x: attend(t, *x, scale=0.7), small)
    assert torch.autograd.gradgradcheck(lambda *x: attend(t, *x), [x[0].detach().requires_grad_() for x in small])


@pytest.mark.ci
def test_tiles_of_registers_and_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = MASKS["random"][:4, :4].repeat_interleave(4, 0).repeat_interleave(8, 1)  # 16 queries, 32 keys
    monkeypatch.setattr(attend_operator, "TILE_ELEMENTS", 0)
    monkeypatch.setattr(attend_operator, "TILE_BYTES", 9 * 4 * 11)  # tiles of nine columns
    cases = (("bsr(4, 8)", torch.float32), ("bsr(4, 8)", torch.float64), ("csc", torch.float32), ("coo", torch.float32))
    for format, dtype in cases:
        if format == "coo":  # a CPU with narrower vectors
            monkeypatch.setattr(attend_operator, "lanes_of", lambda scalar: 8)
        given = [
            numbers(3, 16, 5), numbers(3, 32, 5, seed=1), numbers(3, 32, 11, seed=2),
        ]  # fmt: skip
        given = [x.detach().to(dtype).mul_(8).requires_grad_() for x in given]
        t = ow.asarray(mask).asformat(format)
        got, want = attend(t, *given), dense_attention(mask, *given)
        torch.testing.assert_close(got, want)
        for a, b in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (got, want)), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    half = [x.detach().bfloat16() for x in given]
    assert attend(t, *half).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(t, *given).dtype == torch.bfloat16


def test_elements_that_fill_up_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend_operator, "TILE_ELEMENTS", 0)
    monkeypatch.setattr(
        attend_operator, "TILE_BYTES", 20 * 8 * 5
    )  # tiles of twenty columns, of which rows have 0 to 20
    monkeypatch.setattr(attend_operator, "GROUP", 5)
    seen = numbers(12, 50, seed=7).detach() > torch.linspace(-0.5, 0.5, 12)[:, None]
    given = [numbers(2, 12, 5), numbers(2, 50, 5, seed=1), numbers(2, 50, 3, seed=2)]
    want, grad = dense_attention(seen, *given), numbers(2, 12, 3, seed=3).detach()
    empty = ~seen.any(1)[:, None]
    gradients = torch.autograd.grad(torch.where(empty, 0, want), given, grad)
    for width in (torch.int32, torch.int64):  # of pos; crd has the other
        pos = torch.cat([torch.zeros(1), seen.sum(1).cumsum(0)]).to(width)
        crd = seen.nonzero()[:, 1].to(torch.int64 if width == torch.int32 else torch.int32)
        t = ow.assemble("csr", (12, 50), pos={1: pos}, crd={1: crd}, values=torch.ones(len(crd)))
        got = attend(t, *given)
        torch.testing.assert_close(got, torch.where(empty, 0, want))
        for a, b in zip(torch.autograd.grad(got, given, grad), gradients, strict=True):
            torch.testing.assert_close(a, b)
    v = given[2].detach().clone()
    v[0, 7] = torch.inf
    rows = torch.where(seen[:, 7], torch.inf, got[0, :, 0])
    torch.testing.assert_close(attend(t, *[x.detach() for x in given[:2]], v)[0, :, 0], rows)  # not NaN


@pytest.mark.thin(2)
@pytest.mark.parametrize("lanes", [2, None])
def test_groups_of_neighbouring_queries(lanes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if lanes is not None:  # of a CPU with narrower vectors
        monkeypatch.setattr(attend_operator, "lanes_of", lambda scalar: lanes)
    causal = torch.ones(21, 21, dtype=torch.bool).tril()  # groups of 8 queries, and of the 5 that are left
    causal[7] = False
    t = ow.asarray(causal).asformat("csr")
    given = [numbers(2, 21, 5 - s // 2, seed=s) for s in range(3)]
    got, want = attend(t, *given), dense_attention(causal, *given)
    seen = causal.any(1)[:, None]
    torch.testing.assert_close(torch.where(seen, got, 0), torch.where(seen, want, 0))
    assert not got[:, 7].any()
    loss = torch.where(seen, want, 0).square().sum()
    for a, b in zip(*(torch.autograd.grad(x, given) for x in (got.square().sum(), loss)), strict=True):
        torch.testing.assert_close(a, b)
    k, v = (x.detach().clone() for x in given[1:])
    v[:, 20], k[:, 19] = torch.inf, torch.nan
    out = attend(t, given[0].detach(), k, v)  # of a key that is not seen nothing is seen
    torch.testing.assert_close(out[:, :19], got[:, :19].detach())
    assert out[:, 19:].isnan().all()
    given_there = [given[0].detach().requires_grad_(), k.requires_grad_(), v.requires_grad_()]
    found, wanted = (torch.autograd.grad(attend(t, *x)[:, :19].sum(), x[0])[0] for x in (given_there, given))
    torch.testing.assert_close(found[:, :19], wanted[:, :19])
    torch.testing.assert_close(attend(t, q := torch.empty(21, 0), q, torch.ones(21, 1))[:7], torch.ones(7, 1))
    t._storage.crd[1][0] = 5  # what is kept of a mask is not taken for another
    torch.testing.assert_close(attend(t, *given)[:, 0], given[2][:, 5])


@pytest.mark.ci
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_bands(dtype: torch.dtype) -> None:
    """Groups of queries each of which sees a part of the group's keys only."""
    i, j = torch.arange(45)[:, None], torch.arange(61)
    band = (j - i - 3).abs() <= 9
    given = [numbers(2, n, 6 - s // 2, seed=s).detach().to(dtype).requires_grad_() for s, n in enumerate((45, 61, 61))]
    got, want = attend(ow.asarray(band, format="csr"), *given), dense_attention(band, *given)
    torch.testing.assert_close(got, want)
    losses = (x.square().sum() for x in (got, want))
    for a, b in zip(*(torch.autograd.grad(x, given) for x in losses), strict=True):
        torch.testing.assert_close(a, b)
    checker = torch.tensor([[1, 0, 1], [0, 1, 1]]).repeat_interleave(16, 0).repeat_interleave(12, 1)
    few = torch.zeros(16, 2100).index_fill(1, torch.arange(7, 2000, 150), 1)  # of many keys, which all see the same
    tall = torch.eye(2).repeat_interleave(32, 0).repeat_interleave(12, 1)
    blocks = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1]])
    narrow = [
        (blocks.repeat_interleave(h, 0).repeat_interleave(w, 1), f"bsr({h}, {w})")
        for h, w in ((16, 3), (8, 5), (24, 4))
    ]
    for mask, format in ((checker, "bsr(16, 12)"), (tall, "bsr(32, 12)"), (few, "csr"), (0 * checker, "csr"), *narrow):
        n, m = mask.shape
        given = [numbers(2, n, 6).to(dtype), numbers(2, m, 6, seed=1).to(dtype), numbers(2, m, 5, seed=2).to(dtype)]
        given = [x.detach().requires_grad_() for x in given]
        seen = (mask.sum(1) > 0)[:, None]
        got, want = attend(ow.asarray(mask, format=format), *given), torch.where(seen, dense_attention(mask, *given), 0)
        torch.testing.assert_close(got, want)
        losses = (x.square().sum() for x in (got, want))
        for a, b in zip(*(torch.autograd.grad(x, given) for x in losses), strict=True):
            torch.testing.assert_close(a, torch.where(seen.any(), b, 0))


def test_features_that_fill_vectors() -> None:
    """Whole vectors of features and a rest, which the register tiles transpose."""
    causal = torch.ones(21, 21).tril()
    given = [numbers(2, 21, 17 - 6 * (s // 2), seed=s) for s in range(3)]
    got, want = attend(ow.asarray(causal, format="csr"), *given), dense_attention(causal, *given)
    torch.testing.assert_close(got, want)
    losses = (x.square().sum() for x in (got, want))
    for a, b in zip(*(torch.autograd.grad(x, given) for x in losses), strict=True):
        torch.testing.assert_close(a, b)


def test_nothing_to_attend_to() -> None:
    """No queries, no keys, no features: results and gradients of extent 0, or zeros."""
    causal = torch.ones(21, 21).tril()
    for n, m, d, e in ((0, 21, 5, 4), (21, 0, 5, 4), (0, 0, 5, 4), (21, 21, 0, 4), (21, 21, 5, 0)):
        given = [numbers(2, n, d), numbers(2, m, d, seed=1), numbers(2, m, e, seed=2)]
        mask = causal[:n, :m]
        got = attend(ow.asarray(mask, format="csr"), *given)
        want = dense_attention(mask, *given) if n and m else torch.zeros(2, n, e).double() + sum(x.sum() for x in given)
        torch.testing.assert_close(got, want if m else torch.zeros_like(want))
        for a, b in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (got, want)), strict=True):
            torch.testing.assert_close(a, b if n and m else torch.zeros_like(b))


def test_stacks_of_masks_and_masks_over_numpy() -> None:
    stack = torch.stack([MASKS["causal"], MASKS["random"]])
    given = [numbers(3, 2, 8, 4, seed=s) for s in range(3)]
    want = dense_attention(stack, *given)
    seen = (stack.sum(-1) > 0)[..., None]
    for t in (ow.asarray(stack.numpy(), format="coo"), ow.asarray(stack, format="coo")):
        torch.testing.assert_close(torch.where(seen, attend(t, *given), 0), torch.where(seen, want, 0))
    torch.manual_seed(0)
    assert attend(t, *given, dropout=0.5).isfinite().all()
    torch.testing.assert_close(
        attend(ow.asarray(MASKS["causal"].numpy(), format="csr"), *given), dense_attention(MASKS["causal"], *given)
    )


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "format", ["csr", *(pytest.param(x, marks=pytest.mark.slow) for x in ("coo", "dia", "bsr(3, 3)", "csc", "bitmap"))]
)
def test_compiled_without_a_break(format: str) -> None:
    graphs = []

    def forward(module: torch.fx.GraphModule, _: object) -> object:
        graphs.append(module)
        return make_boxed_func(module.forward)

    torch.compiler.reset()
    step = torch.compile(attend, fullgraph=True, backend=aot_autograd(fw_compiler=forward))
    given = [numbers(2, 8, 4, seed=s) for s in range(3)]
    for name in ("causal", "band", "random"):
        t = ow.asarray(MASKS[name]).asformat(format)
        got, want = step(t, *given, is_causal=True), attend(t, *given, is_causal=True)
        torch.testing.assert_close(got, want)
        for a, b in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (got, want)), strict=True):
            torch.testing.assert_close(a, b)
    assert len(graphs) <= 4  # forward and backward, once of one size and once of any
    assert step(t, *given, dropout=0.5).isfinite().all()


@pytest.mark.slow
def test_the_operator() -> None:
    """What torch asks of operators: a schema that holds, a fake kernel that agrees, gradients through it."""
    t = ow.asarray(MASKS["random"]).asformat("csr")
    mask = ([t.pos(1), t.crd(1)], t.format.text, "--pc", [8, 8], t.nse, [2], False)
    q, k, v = (numbers(2, 8, 4, seed=s) for s in range(3))
    torch.library.opcheck(torch.ops.openwork.attend, (*mask, q, k, v, None, 0.5))


def test_masks_of_torch_causal_ones_and_groups_of_heads() -> None:
    mask = MASKS["random"] > 0
    q, k, v = numbers(2, 6, 8, 4), *(numbers(2, 3, 8, 4, seed=s) for s in (1, 2))
    for is_causal in (False, True):
        seen = mask.tril() if is_causal else mask
        want = F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True)
        for given in (mask.to_sparse_csr(), ow.asarray(mask, format="bsr(1, 1)"), ow.asarray(mask.numpy())):
            if not isinstance(given, torch.Tensor):
                given = given.asformat("csr") if given.format.name == "dense" else given
            got = attend(given, q, k, v, is_causal=is_causal, enable_gqa=True)
            torch.testing.assert_close(got, torch.where(seen.any(1)[:, None], want, 0))
    one = [x[0] for x in (q, k, v)]
    want = F.scaled_dot_product_attention(*one, mask, enable_gqa=True)
    got = attend(mask.to_sparse_csr(), *one, enable_gqa=True)
    torch.testing.assert_close(got, torch.where(mask.any(1)[:, None], want, 0))
    with pytest.raises(ow.ShapeError, match="1 heads of queries and 3"):
        attend(mask.to_sparse_csr(), q[0, 0], k, v, enable_gqa=True)
    with pytest.raises(ow.ShapeError, match="6 heads of queries and 4"):
        attend(mask.to_sparse_csr(), q, *(numbers(2, 4, 8, 4) for _ in range(2)), enable_gqa=True)
    with pytest.raises(ow.DTypeError, match=r"a mask of type torch\.Tensor"):
        attend(mask, q, q, q)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_transforms() -> None:
    mask = MASKS["causal"] > 0
    masks = {n: ow.asarray(mask[:n, :n].contiguous()).asformat("csr") for n in (4, 8)}
    q, k, v = (numbers(3, 8, 4, seed=s).detach() for s in range(3))

    def mine(*x: torch.Tensor) -> torch.Tensor:
        return attend(masks[x[1].shape[-2]], *x)

    def theirs(*x: torch.Tensor) -> torch.Tensor:
        q, k, v = x
        n = k.shape[-2]
        return (q @ k.mT / 2).masked_fill(~mask[:n, :n], -torch.inf).softmax(-1) @ v

    for transform in (
        lambda f: torch.vmap(f)(q, k, v),
        lambda f: torch.vmap(f, in_dims=(2, None, None))(q.movedim(0, 2), k[0], v[0]),
        lambda f: torch.vmap(torch.func.grad(lambda *x: f(*x).square().sum(), argnums=(0, 1, 2)))(q, k, v),
        lambda f: torch.func.jacrev(f, argnums=1)(q[0], k[0], v[0]),
        lambda f: torch.func.jvp(lambda x: f(x, k, v), (q,), (v,)),
        lambda f: torch.func.hessian(lambda x: f(x, k[0, :4], v[0, :4]).square().sum())(q[0, :4]),
    ):
        torch.testing.assert_close(transform(mine), transform(theirs))
    with pytest.raises(ow.UnsupportedError, match="second derivative by transforms"):
        torch.func.jacrev(torch.func.jacrev(lambda x: mine(x, k[0], v[0]).square().sum()))(q[0])


@pytest.mark.parametrize("places", [3, 4])
def test_threads(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend_operator, "PARALLEL_WORK", 0)
    threads = ow.get_num_threads()
    for mask in (MASKS["causal"], MASKS["random"]):
        t, given = ow.asarray(mask).asformat("csr"), [numbers(places, 8, 4, seed=s) for s in range(3)]
        results = []
        for n in (1, 2):
            ow.set_num_threads(n)
            try:
                out = attend(t, *given)
                results.append([out, *torch.autograd.grad(out.square().sum(), given)])
            finally:
                ow.set_num_threads(threads)
        torch.testing.assert_close(*results)


@pytest.mark.ci
def test_dropout_keeps_the_mean() -> None:
    t, (q, k) = ow.asarray(MASKS["causal"]).asformat("csr"), (numbers(400, 8, 2, seed=s) for s in (0, 1))
    torch.manual_seed(0)
    v = torch.ones(400, 8, 1, dtype=torch.float64, requires_grad=True)
    out = attend(t, q, k, v, dropout=0.25)
    assert 0.95 < out.mean() < 1.05
    assert out.std() > 0.05
    (grad,) = torch.autograd.grad(out.sum(), v)
    torch.testing.assert_close(grad.sum(), out.sum())  # backward drops what forward did
    small = [numbers(3, 4, 2), numbers(3, 4, 2, seed=1), numbers(3, 4, 2, seed=2)]
    for mask in (MASKS["causal"][:4, :4], torch.stack([MASKS["random"][k : k + 4, :4] for k in range(3)])):
        t = ow.asarray(mask, format="csr" if mask.ndim == 2 else "coo")

        def dropped(*x: torch.Tensor, t: ow.Tensor = t) -> torch.Tensor:
            torch.manual_seed(1)
            return attend(t, *x, dropout=0.4)

        assert torch.autograd.gradcheck(dropped, small, fast_mode=True)
        assert torch.autograd.gradgradcheck(dropped, small, fast_mode=True)


def test_layer() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    mine = SparseAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        for name, weight, bias in zip("qkv", theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True):
            getattr(mine, f"{name}_proj").weight.copy_(weight)
            getattr(mine, f"{name}_proj").bias.copy_(bias)
        mine.out_proj.load_state_dict(theirs.out_proj.state_dict())
    x, hidden = numbers(2, 8, 8), torch.tensor([[False] * 8, [False] * 5 + [True] * 3])
    mask = ow.asarray(MASKS["causal"]).asformat("csr")
    not_seen = MASKS["causal"] == 0
    for padding in (None, hidden):
        want = theirs(x, x, x, key_padding_mask=padding, attn_mask=not_seen)[0]
        torch.testing.assert_close(mine(x, x, x, key_padding_mask=padding, attn_mask=mask)[0], want)
        with torch.device("meta"):  # where tensors are made that nothing else places
            found = mine(x, x, x, key_padding_mask=padding, attn_mask=not_seen)[0]
        torch.testing.assert_close(found, want)
    mine.dropout = 0.9
    trained, evaluated = mine(x, x, x, attn_mask=mask)[0], mine.eval()(x, x, x, attn_mask=mask)[0]
    torch.testing.assert_close(evaluated, theirs(x, x, x, attn_mask=not_seen)[0])
    assert not torch.allclose(trained, evaluated)
    assert SparseAttention(6, 1).head_dim == 6
    for heads in (0, -2, 4):
        with pytest.raises(ow.ShapeError, match=f"embed_dim=6 in {heads} heads"):
            SparseAttention(6, heads)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True).double().eval()
    layer.self_attn = SparseAttention(8, 2, batch_first=True, mask=mask).double()
    with torch.no_grad():
        first = layer(x)
        changed = x.clone()
        changed[:, -1] += 1
        torch.testing.assert_close(layer(changed)[:, :-1], first[:, :-1])  # the fast path would not see the mask
        net = prune(layer, 0.5)
        torch.testing.assert_close(densify(net)(x)[:, 0], layer(x)[:, 0])
    assert "mask=(8, 8)" in repr(layer.self_attn)


def test_refusals() -> None:
    mask, x = ow.asarray(MASKS["band"]).asformat("csr"), numbers(2, 8, 4)
    with pytest.raises(ow.ShapeError, match=r"attend: mask, queries, keys, values of shapes"):
        attend(mask, x, x[:, :5], x)
    with pytest.raises(ow.ShapeError, match="do not broadcast"):
        attend(mask, x, numbers(3, 8, 4), x)
    with pytest.raises(ow.DTypeError, match=r"values of torch\.int64"):
        attend(mask, *[x.detach().long()] * 3)
    with pytest.raises(ow.ShapeError, match="dropout=1"):
        attend(mask, x, x, x, dropout=1)
    with pytest.raises(ow.ShapeError, match="embed_dim=8 in 3 heads"):
        SparseAttention(8, 3)
    with pytest.raises(ow.UnsupportedError, match="add_bias_kv"):
        SparseAttention(4, 2, add_bias_kv=True, mask=mask, batch_first=True).double()(x, x, x)


def test_arrays_of_numpy_are_refused() -> None:
    ones = np.ones((4, 2), "f")
    with pytest.raises(ow.DTypeError, match=r"attend: queries, keys or values of type numpy\.ndarray"):
        ow.nn.attend(ow.eye(4, format="csr", dtype="float32"), ones, ones, ones)
