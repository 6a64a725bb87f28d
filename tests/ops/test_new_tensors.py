"""A call on a new tensor, its kernels compiled, enters few Python functions: what every line of a program costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from openwork.checked import CHECKED

MOST = {
    "a @ x": 40, "a @ X": 50, "X.T @ a.T": 74, "a.sum()": 44, "a.sum(0)": 48,
    "a.sum(1)": 48, "a.to_dense()": 42,
}  # fmt: skip
"""The most functions that a call may enter. A number may go down."""

SCRIPT = """
import json, sys
import numpy as np, openwork as ow

A = np.where(np.random.default_rng(0).random((30, 40)) < 0.2, 1.5, 0.0)
new = lambda: ow.asarray(A.copy(), format="csr")

def entered(call, tensor):
    count = 0
    def visit(frame, event, argument):
        nonlocal count
        count += event == "call"
    sys.setprofile(visit)
    try:
        call(tensor)
    finally:
        sys.setprofile(None)
    return count - 1

found = {"measure": entered(lambda t: (lambda: (lambda: t)())(), None)}
for text in json.loads(sys.argv[1]):
    call = eval("lambda a: " + text, {"x": np.ones(40), "X": np.ones((40, 5))})
    for _ in range(3):
        call(new())
    found[text] = entered(call, new())
print(json.dumps(found))
"""


@pytest.mark.skipif(CHECKED, reason="addresses take calls of their own")
def test_functions_entered() -> None:
    """In a process of its own: what others have imported takes calls too."""
    run = [sys.executable, "-c", SCRIPT, json.dumps(list(MOST))]
    found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert found.pop("measure") == 2
    assert found.keys() == MOST.keys()
    assert {text: n for text, n in found.items() if n > MOST[text]} == {}
