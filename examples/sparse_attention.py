"""A small transformer that predicts the next character of a text, whose attention sees a band of characters and every
sixteenth before that (Child and others, Generating long sequences with sparse transformers, 2019: a fixed pattern).

The mask is a sparse Tensor of `openwork.nn.SparseAttention`, whose scores are computed where it has elements, in
torch's TransformerEncoderLayer. The dense counterpart is torch's MultiheadAttention, with the same mask as booleans and
the same seeds; a third one sees all that came before. Run it with the path of a text; without, it is Python's help.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import nn

import openwork as ow
from openwork.nn import SparseAttention

WIDTH, HEADS, LAYERS = 64, 4, 2


class Transformer(nn.Module):
    """Characters (batch, length) -> scores of the next ones; `mask` is a sparse Tensor, or what is hidden."""

    def __init__(self, characters: int, length: int, mask: ow.Tensor | torch.Tensor) -> None:
        super().__init__()
        self.mask = None if isinstance(mask, ow.Tensor) else mask
        self.character, self.place = nn.Embedding(characters, WIDTH), nn.Embedding(length, WIDTH)
        layers = (nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS))
        self.layers, self.out = nn.ModuleList(layers), nn.Linear(WIDTH, characters)
        if isinstance(mask, ow.Tensor):
            for layer in self.layers:
                layer.self_attn = sparse_like(layer.self_attn, mask)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.character(text) + self.place.weight[: text.shape[1]]
        for layer in self.layers:
            x = layer(x, src_mask=self.mask)
        return self.out(x)


def sparse_like(attention: nn.MultiheadAttention, mask: ow.Tensor) -> SparseAttention:
    """The attention with the weights of torch's, that sees what a mask has."""
    result = SparseAttention(WIDTH, HEADS, mask=mask, batch_first=True)
    projections = (result.q_proj, result.k_proj, result.v_proj)
    with torch.no_grad():
        for projection, weight, bias in zip(
            projections, attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3), strict=True
        ):
            projection.weight.copy_(weight)
            projection.bias.copy_(bias)
        result.out_proj.load_state_dict(attention.out_proj.state_dict())
    return result


def strided(length: int, band: int = 24, stride: int = 16) -> torch.Tensor:
    """What each place sees (length, length): the places of a band before it, and every `stride`-th before these."""
    i, j = torch.arange(length)[:, None], torch.arange(length)
    return (j <= i) & ((i - j < band) | (j % stride == stride - 1))


def letters(text: str) -> tuple[torch.Tensor, int]:
    """The characters of a text as numbers, and how many kinds there are."""
    kinds = {c: k for k, c in enumerate(sorted(set(text)))}
    return torch.tensor([kinds[c] for c in text]), len(kinds)


def train(model: nn.Module, text: torch.Tensor, length: int, steps: int, batch: int = 16) -> float:
    """Bits that the model needs for a character of the last tenth of the text, after steps on the rest."""
    seen, unseen = text[: -len(text) // 10], text[-len(text) // 10 :]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        first = torch.randint(0, len(seen) - length, (batch, 1), generator=draw)
        part = seen[first + torch.arange(length + 1)]
        optimizer.zero_grad()
        F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    parts = unseen[: len(unseen) // (length + 1) * (length + 1)].reshape(-1, length + 1)[:64]
    with torch.no_grad():
        loss = sum(F.cross_entropy(model(p[:, :-1]).flatten(0, 1), p[:, 1:].flatten()) for p in parts.split(16))
    return 16 * float(loss) / len(parts) / math.log(2)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train with sparse and dense attention, print the bits for a character, and return those of the same mask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a text in UTF-8; without, Python's own help")
    parser.add_argument("--quick", action="store_true", help="few steps, short sequences")
    given = parser.parse_args(arguments)
    whole = Path(given.path).read_text("utf-8") if given.path else "".join(topics[name] for name in sorted(topics))
    text, kinds = letters(whole)
    length, steps = (32, 12) if given.quick else (256, 300)
    sees = strided(length)
    causal = torch.ones(length, length).tril().bool()
    share = float(sees.sum() / causal.sum())
    print(f"data       {given.path or 'the help of Python'}: {len(text):,} characters of {kinds} kinds")
    masks = {
        "sparse": ow.asarray(sees.float(), format="csr"),
        "dense ": ~sees,
        "all    ": ~causal,
    }
    bits = []
    for name, mask in masks.items():
        torch.manual_seed(0)
        start = time.perf_counter()
        bits.append(train(Transformer(kinds, length, mask), text, length, steps))
        seconds = time.perf_counter() - start
        print(f"{name}     {bits[-1]:.3f} bits for an unseen character; {seconds:.1f} s")
    print(f"the mask has {share:.0%} of what came before; 'all' sees all of it")
    return bits[0], bits[1]


if __name__ == "__main__":
    main()
