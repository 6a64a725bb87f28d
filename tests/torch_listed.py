"""The cells of torch's sample inputs that are not green, and the operations of which there are none, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch

from torch_opinfo import LAYOUTS

OUTSIDE: dict[str, str] = {
    "no tensor to be sparse": "arange eye empty empty_* full linspace* logspace* ones zeros scalar_tensor signal.* tril_indices triu_indices randint randn normal* broadcast_shapes",
    "random numbers": "bernoulli cauchy exponential geometric log_normal multinomial rand_like randint_like randn_like uniform *dropout* nn.functional.rrelu svd_lowrank pca_lowrank",
    "strides and storage, which a sparse tensor has not": "as_strided* new_empty* view_as_complex view_as_real resize_ resize_as_",
    "Fourier transforms: every element of the result depends on every one": "fft.* stft istft",
    "images and signals: convolution, pooling, interpolation": "nn.functional.*pool* nn.functional.conv* nn.functional.interpolate* nn.functional.upsample* nn.functional.grid_sample grid_sampler* nn.functional.pixel* nn.functional.channel_shuffle nn.functional.unfold nn.functional.local_response_norm *max_unpool* max_pool2d* _upsample*",
    "layers over dense activations": "*batch_norm* *group_norm nn.functional.instance_norm *layer_norm nn.functional.multi_head* nn.functional.scaled_dot* native_* nn.functional.ctc_loss nn.functional.linear_cross* nn.functional.embedding_bag",
    "torch's own parts, not public": "torch.* jiterator* _segment* _chunk_cat hash_tensor _softmax_backward_data _unsafe* bmm.triton* addmm.decomposed",
    "dense factorizations": "geqrf ormqr linalg.householder* linalg.ldl* linalg.lstsq* linalg.lu* linalg.qr linalg.svd* linalg.eig* linalg.pinv* linalg.cholesky* linalg.cond cholesky* qr svd lu* pinverse linalg.matrix_rank*",
    "masked tensors, whose matrix is tests/masked": "masked.*",
    "samples are ordered, and are not once elements are left out": "searchsorted",
}
"""Operations of torch's list that are not in the matrix, as patterns, by reason."""


def outside(name: str) -> bool:
    return any(fnmatch(name, pattern) for patterns in OUTSIDE.values() for pattern in patterns.split())


@dataclass(frozen=True)
class Listed:
    """An operation with cells that are not green: why, in which stages, on which layouts (all that it fits without)."""

    reason: str
    forward: bool = True
    beside: frozenset[str] = frozenset()

    def layouts(self, stage: str, every: set[str]) -> set[str]:
        return every - self.beside if self.forward or stage != "forward" else set()


_NO_BATCH = frozenset(
    k for k in LAYOUTS if k.split()[0] in ("batched",) or (k.startswith("hybrid ") and k != "hybrid coo")
)
_COORDINATES = frozenset(("coo", "uncoalesced coo", "hybrid coo", "uncoalesced hybrid coo", "csf", "bitmap"))
_SINGULAR = "all singular values, which only dense factorizations give"
_COMPLETE = "the result has no zeros to speak of, whatever the operand has"

REASONS: dict[str, Listed] = {
    "cdist nn.functional.pdist": Listed(
        "a distance between any two rows: dense by nature; torch.cdist(x.to_dense(), y)"
    ),
    "matrix_exp linalg.inv linalg.inv_ex linalg.tensorinv": Listed(_COMPLETE),
    "norm.nuc": Listed(_SINGULAR),
    "linalg.norm": Listed("the norms 2 and 'nuc' need " + _SINGULAR, beside=frozenset(LAYOUTS) - _COORDINATES),
    "linalg.norm.subgradients_at_zero": Listed(
        "the norm 'nuc' needs " + _SINGULAR, beside=frozenset(LAYOUTS) - {"coo", "uncoalesced coo", "bitmap"}
    ),
    "linalg.matrix_power": Listed("powers 0 of stacks, and negative powers, which need the inverse", beside=_NO_BATCH),
    "linalg.solve_ex triangular_solve": Listed("use linalg.solve, linalg.solve_triangular"),
    "constant_pad_nd nn.functional.pad.constant": Listed(
        "padding by another number than the fill value has none itself"
    ),
    "nn.functional.embedding": Listed("padding_idx, max_norm and scale_grad_by_freq: openwork.nn.SparseEmbedding"),
    "nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.multilabel_soft_margin_loss "
    "nn.functional.cosine_embedding_loss nn.functional.gaussian_nll_loss": Listed("losses over dense predictions"),
    "mode unique_consecutive unique histogram histogramdd": Listed(
        "counts of slices, runs and fibres: to_dense() first"
    ),
    "gradient": Listed("use diff"),
    "chalf": Listed("complex32 is no dtype of a Tensor"),
}
"""Operations with cells that are not green."""

LISTED = {name: listed for names, listed in REASONS.items() for name in names.split()}
