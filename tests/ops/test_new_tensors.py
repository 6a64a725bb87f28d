"""A call on a new tensor, its kernels compiled, enters few Python functions: what every line of a program costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from openwork.checked import CHECKED

MOST = {
    "a @ x": 25, "a @ X": 25, "X.T @ a.T": 51, "a.sum()": 20, "a.sum(0)": 35, "a.sum(1)": 35, "a.to_dense()": 25,
    "a + b": 29, "a * b": 37, "a * 2": 13, "abs(a)": 22, "a > 0.5": 31, "a * x": 102,
    "a[:, 3:9]": 21, "a[:, [1, 5]]": 24, "a.asformat('csc')": 29, "ow.diagonal(a)": 16, "ow.tril(a)": 43,
    "ow.vstack([a, b])": 33, "a @ b.T": 70, "a[[1, 5, 7]]": 19, "a[3, 4]": 14,
    "np.asarray(a.sum(1))": 58, "hasattr(a, 'todens')": 4,
}  # fmt: skip
"""The most functions that a call may enter. A number may go down."""
MOST_TORCH = {
    "a @ x": 33, "a.sum()": 24, "a.to_dense()": 34, "a + b": 36, "a * 2": 15, "torch.relu(a)": 16,
}  # fmt: skip
"""The same over torch buffers."""
MOST_RECORDED = {"a @ x": 54, "a.sum()": 26, "a + b": 53, "a * 2": 15}
"""The same of tensors that require a gradient."""

MOST_NEW_SHAPE = {
    "a @ x": 60, "a.sum(0)": 62, "a.sum(1)": 63, "a.to_dense()": 63, "a.asformat('csc')": 75, "a[:, 3:9]": 105,
    "ow.diagonal(a)": 105, "ow.tril(a)": 92, "ow.vstack([a, b])": 105, "a[[1, 5, 7]]": 55, "a + b": 68, "a * 2": 14, "a @ ow.asarray(b.T, format='csr')": 133,
}  # fmt: skip
"""The same of tensors whose shape was never met: plans are by types, what follows from a shape is a few words."""

SCRIPT = """
import json, sys
import numpy as np, openwork as ow

A = np.where(np.random.default_rng(0).random((30, 40)) < 0.2, 1.5, 0.0)
library, texts = sys.argv[1], json.loads(sys.argv[2])
names = {"x": np.ones(40), "X": np.ones((40, 5)), "ow": ow, "np": np}
if library in ("torch", "recorded"):
    import torch
    names = {"torch": torch, "x": torch.ones(40, dtype=torch.float64)}

def new(seed):
    array = np.roll(A, seed, 1)
    if library == "shapes":
        array = array[:, :width]
        names["x"] = np.ones(width)
    if library in ("numpy", "shapes"):
        return ow.asarray(array, format="csr")
    t = ow.asarray(torch.from_numpy(array), format="csr")
    return t.requires_grad_() if library == "recorded" else t

def entered(call, *tensors):
    count = 0
    def visit(frame, event, argument):
        nonlocal count
        count += event == "call"
    sys.setprofile(visit)
    try:
        call(*tensors)
    finally:
        sys.setprofile(None)
    return count - 1

found = {"measure": entered(lambda t: (lambda: (lambda: t)())(), None)}
for number, text in enumerate(texts):
    call = eval("lambda a, b: " + text, names)
    for seed in range(3):
        width = 40 - seed
        call(new(seed), new(seed + 7))
    width = 36 - number
    found[text] = entered(call, new(3), new(10))
print(json.dumps(found))
"""


@pytest.mark.ci
@pytest.mark.skipif(CHECKED, reason="addresses take calls of their own")
@pytest.mark.parametrize(
    ("library", "most"),
    [("numpy", MOST), ("shapes", MOST_NEW_SHAPE), ("torch", MOST_TORCH), ("recorded", MOST_RECORDED)],
    ids=lambda x: str(x)[:8],
)
def test_functions_entered(library: str, most: dict[str, int]) -> None:
    """In a process of its own: what others have imported takes calls too."""
    if library in ("torch", "recorded"):
        pytest.importorskip("torch")
    run = [sys.executable, "-W", "ignore", "-c", SCRIPT, library, json.dumps(list(most))]
    found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert found.pop("measure") == 2
    assert found.keys() == most.keys()
    assert {text: n for text, n in found.items() if n > most[text]} == {}


MODULES = """
import sys
import numpy as np, openwork as ow

def new(seed):
    return ow.asarray(np.where(np.random.default_rng(seed).random((30, 40)) < 0.2, 1.5, 0.0), format="csr")

x = np.ones(40)
for seed in range(3):
    new(seed) @ x
a, modules = new(3), set()
sys.setprofile(lambda frame, event, _: modules.add(frame.f_code.co_filename) if event == "call" else None)
a @ x
sys.setprofile(None)
print(*sorted(m.partition("openwork/")[2] for m in modules), sep="\\n")
"""


@pytest.mark.skipif(CHECKED, reason="addresses take calls of their own")
def test_modules_entered_by_a_product() -> None:
    """From the operator to the launch, twelve."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MODULES], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert len(modules) <= 12, modules
