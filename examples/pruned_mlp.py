"""A perceptron that is pruned while it is trained, to one weight in ten, beside the one that stays dense.

After a few dense epochs `openwork.nn.prune` takes a part of the hidden layer's weights before each epoch, fewer and
fewer of them, and the layer trains on in sparse form (the schedule of Zhu and Gupta, To prune or not to prune, 2017);
the output layer stays dense. The dense counterpart has the same seeds, epochs and rates.

Run it with the path of a file of images, one in each row (Matrix Market and whatever else `ow.read` takes): the task is
to tell which way up an image is, so that no labels are needed. The data folder holds handwritten digits. Without it
digits as on a display are generated, shifted and with noise.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import openwork as ow
from openwork.nn import prune

FOLDER = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DATA = FOLDER / "lagraph/sparse-images-1024_subset.mtx.gz"

AMOUNT = 0.905
"""What goes of the hidden layer, so that of all weights one in ten is left."""

Data = tuple[torch.Tensor, torch.Tensor]
"""Images as rows of pixels, and their classes."""


def turned(path: str) -> Data:
    """The images of a file, each in its four positions; the class is by how many quarters it is turned."""
    pixels = torch.as_tensor(np.asarray(ow.read(path).to_dense()), dtype=torch.float32)
    side = round(pixels.shape[1] ** 0.5)
    if side * side != pixels.shape[1]:
        raise ValueError(f"{path}: {pixels.shape[1]} pixels in a row are no square image")
    images = pixels.reshape(-1, side, side)
    every = torch.stack([images.rot90(k, (1, 2)) for k in range(4)], 1)
    return every.reshape(-1, side * side), torch.arange(4).repeat(len(images))


SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
STROKES = {
    "a": np.s_[2:4, 4:12], "b": np.s_[2:14, 10:12], "c": np.s_[14:26, 10:12], "d": np.s_[24:26, 4:12],
    "e": np.s_[14:26, 4:6], "f": np.s_[2:14, 4:6], "g": np.s_[13:15, 4:12],
}  # fmt: skip


def generated(images: int = 4800, seed: int = 0) -> Data:
    """Digits of seven strokes on 32 by 32 pixels, one pixel in twenty wrong."""
    rng = np.random.default_rng(seed)
    shapes = np.zeros((10, 32, 32), bool)
    for digit, strokes in enumerate(SEGMENTS):
        for stroke in strokes:
            shapes[digit][STROKES[stroke]] = True
    labels = rng.integers(0, 10, images)
    moved = np.stack([np.roll(shapes[k], rng.integers(0, (4, 4)), (0, 1)) for k in labels])
    pixels = (moved ^ (rng.random(moved.shape) < 0.05)).reshape(images, -1)
    return torch.as_tensor(pixels, dtype=torch.float32), torch.as_tensor(labels)


def train(model: torch.nn.Module, data: Data, epochs: int, rate: float, batch: int = 128) -> None:
    """Epochs of Adam on shuffled batches."""
    X, y = data
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for k in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(X[k]), y[k]).backward()
            optimizer.step()


def accuracy(model: torch.nn.Module, data: Data) -> float:
    """The part of the images whose class is found."""
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def schedule(amount: float, steps: int) -> list[float]:
    """The part of the weights that is gone after each step: much at first, little at last."""
    return [amount * (1 - (1 - k / steps) ** 3) for k in range(1, steps + 1)]


def run(known: Data, test: Data, seed: int, amount: float, quick: bool) -> float:
    """The accuracy on unseen images of a perceptron whose hidden layer is pruned by this much; 0 for not at all."""
    torch.manual_seed(seed)
    classes = int(known[1].max()) + 1
    model = torch.nn.Sequential(torch.nn.Linear(known[0].shape[1], 128), torch.nn.ReLU(), torch.nn.Linear(128, classes))
    first, steps, last = (1, 4, 1) if quick else (4, 16, 4)
    train(model, known, first, 1e-3)
    for gone in schedule(amount, steps):
        if amount:
            model[0] = prune(model[0], gone, "csr")
        train(model, known, 1, 2e-3)
    train(model, known, last, 5e-4)
    return accuracy(model, test)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train pruned and dense, print both accuracies, and return them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a file of images, one in each row")
    parser.add_argument("--quick", action="store_true", help="one seed, few images, few epochs")
    parser.add_argument("--seeds", type=int, default=3, help="how many networks of each kind")
    given = parser.parse_args(arguments)
    path = given.path or (str(DATA) if DATA.exists() else None)
    X, y = turned(path) if path else generated()
    if given.quick:
        X, y = X[:1600], y[:1600]
    cut = len(y) // 20 * 4  # a fifth is never seen; the four positions of an image stay together
    test, known = (X[:cut], y[:cut]), (X[cut:], y[cut:])
    task = f"{Path(path).name}, which way up" if path else "generated digits"
    print(f"data       {task}: {len(y)} images of {X.shape[1]} pixels")
    seeds = 1 if given.quick else given.seeds
    found = []
    for name, amount in (("sparse", AMOUNT), ("dense ", 0.0)):
        start = time.perf_counter()
        found.append(sum(run(known, test, seed, amount, given.quick) for seed in range(seeds)) / seeds)
        seconds = time.perf_counter() - start
        print(f"{name}     accuracy {found[-1]:.1%} on unseen images, mean of {seeds} seeds; {seconds:.1f} s")
    return found[0], found[1]


if __name__ == "__main__":
    main()
