"""Checked kernels: broken ones are caught with key, line, index and length; sound ones compute what they always do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kernel_mutants import fuelled, mutants
from views import LAYOUTS, REPEATED, TORCH_LAYOUTS, numpy_view, torch_view

from openwork.checked import Address, bounded_address
from openwork.codegen.checked import compile_checked
from openwork.codegen.emit import emit
from openwork.codegen.emit_checked import sites
from openwork.codegen.pool import get_num_threads, parallel, parallel_private, set_num_threads
from openwork.errors import CompilerBug
from openwork.ir.interpret import run as interpret
from openwork.ir.loop import Kernel
from openwork.ir.printer import show
from openwork.ir.text import parse
from openwork.runtime import strided
from openwork.runtime.kernel_text import build_kernel

SPMV = "y[i] += A[i, j] * x[j]"
ROWS = "def k(lo: i64, hi: i64, x: f64[const], y: f64[mut], n: i64):\n"


def kernel(text: str) -> Kernel:
    return parse(text)


def violation(k: Kernel, *args: object, lo: int = 0, hi: int = 0) -> str:
    compiled = compile_checked(k, "the key")
    with pytest.raises(CompilerBug) as caught:
        compiled.run(compiled.pack(args), lo, hi)
    return str(caught.value)


def test_a_load_past_the_end_says_key_line_index_and_length() -> None:
    k = kernel("def k(x: f64[const], y: f64[mut], n: i64):\n    for i in range(n):\n        y[i] = x[i + 1]\n")
    assert violation(k, np.ones(4), np.zeros(9), 6) == (
        "checked kernel k: index 4 of x, which has 4 elements\n  line 3: y[i] = x[i + 1]\n  key: the key"
    )


def test_a_store_before_the_first() -> None:
    k = kernel("def k(y: i32[mut]):\n    if y[0] > 0:\n        y[1] = 5\n    elif y[1] > 0:\n        y[-1] = 7\n")
    assert violation(k, np.array([0, 1, 1], np.int32)).startswith(
        "checked kernel k: index -1 of y, which has 3 elements\n  line 5: y[-1]"
    )


def test_lines_behind_other_blocks() -> None:
    k = kernel("def k(y: i32[mut]):\n    for i in range(3):\n        pass\n    y[-1] = 7\n")
    assert "line 4: y[-1] = 7" in violation(k, np.array([0, 0], np.int32))
    k = kernel(
        "def k(y: i32[mut]):\n    if y[0] > 0:\n        y[1] = 5\n    else:\n        y[1] = 6\n        y[-1] = 7\n"
    )
    assert "line 6: y[-1] = 7" in violation(k, np.array([0, 0], np.int32))
    k = kernel(
        "def k(y: i32[mut]):\n    if y[0] > 0:\n        y[1] = 5\n    elif y[1] > 0:\n        y[0] = 6\n    y[-1] = 7\n"
    )
    assert "line 6: y[-1] = 7" in violation(k, np.array([0, 0], np.int32))


@pytest.mark.parametrize(("start", "wrong"), [(0, None), (1, 8), (-1, -1), (2**63 - 3, 2**63 - 3)])
def test_consecutive_elements(start: int, wrong: int | None) -> None:
    k = kernel("def k(x: f64[const], y: f64[mut], s: i64):\n    y[0] = hsum(vload(x, s, 8))\n")
    compiled = compile_checked(k)
    args = compiled.pack([np.arange(8.0), out := np.zeros(1), start])
    if wrong is None:
        assert compiled.run(args) == 0
        assert out[0] == 28
        return
    with pytest.raises(CompilerBug, match=f"index {start} of x, which has 8 elements"):
        compiled.run(args)


@pytest.mark.parametrize("scalar", ["f64", "c64", "i8", "bool"])
def test_gathers_and_scatters(scalar: str) -> None:
    text = f"def k(c: i64[const], x: {scalar}[const], y: {scalar}[mut]):\n    y[vload(c, 0, 4)] = x[vload(c, 4, 4)]\n"
    dtype = {"f64": "f8", "c64": "c8", "i8": "i1", "bool": "?"}[scalar]
    compiled = compile_checked(kernel(text), "k")
    x, y = np.ones(5, dtype), np.zeros(3, dtype)
    good = np.array([0, 1, 2, 2, 4, 4, 0, 1])
    assert compiled.run(compiled.pack([good, x, y])) == 0
    assert (y == 1).all()
    for at, bad, message in ((6, 5, "index 5 of x, which has 5"), (3, -2, "index -2 of y, which has 3")):
        broken = good.copy()
        broken[at] = bad
        with pytest.raises(CompilerBug, match=message):
            compiled.run(compiled.pack([broken, x, y]))


def test_workspaces_have_their_length_and_none_is_negative() -> None:
    k = kernel("def k(n: i64, at: i64):\n    w: i32[n] = zeros\n    w[at] += 1\n")
    assert "index 3 of w, which has 3 elements\n  line 3: w[at] += 1" in violation(k, 3, 3)
    assert "workspace w of -2 elements\n  line 2: w: i32[n] = zeros" in violation(k, -2, 0)


def test_coordinates_that_do_not_fit_are_caught_and_values_wrap() -> None:
    k = kernel("def k(n: i64, b_crd0: i32[mut]):\n    b_crd0[0] = i32(n)\n")
    assert "2147483648 cast to i32, which holds -2147483648 to 2147483647\n  line 2" in violation(
        k, 2**31, np.zeros(1, np.int32)
    )
    k = kernel("def k(keys: i64[const], b_crd0: i32[mut]):\n    b_crd0[0] = i32x4(vload(keys, 0, 4))\n")
    assert "-2147483649 cast to i32" in violation(k, np.array([1, 2, -(2**31) - 1, 3]), np.zeros(4, np.int32))
    k = kernel("def k(keys: i32[const], b_crd0: u16[mut]):\n    b_crd0[0] = u16x4(vload(keys, 0, 4))\n")
    assert "-1 cast to u16" in violation(k, np.array([1, 2, -1, 3], np.int32), np.zeros(4, np.uint16))
    k = kernel("def k(keys: u32[const], b_crd0: i16[mut]):\n    b_crd0[0] = i16(keys[0])\n")
    assert "4294967295 cast to i16" in violation(k, np.array([2**32 - 1], np.uint32), np.zeros(1, np.int16))
    values = kernel("def k(v: i64[const], out: i8[mut]):\n    out[0] = i8(v[0])\n")
    compiled = compile_checked(values)
    out = np.zeros(1, np.int8)
    assert compiled.run(compiled.pack([np.array([300]), out])) == 0
    assert out[0] == 44


def test_views_count_from_their_own_ends() -> None:
    whole = np.arange(10.0)
    part = whole[3:6]
    where = bounded_address(part, part.ctypes.data)
    assert where.bounds(8) == (0, 3)
    assert (where + 8).bounds(8) == (-1, 2)
    assert isinstance(16 + where - 8, Address)
    back = whole[::-2]
    assert bounded_address(back, back.ctypes.data).bounds(8) == (-8, 1)
    assert bounded_address(whole[:0], 64).bounds(8) == (0, 0)


VIEWS = [("numpy", how) for how in (*LAYOUTS, *REPEATED)] + [("torch", how) for how in (*TORCH_LAYOUTS, *REPEATED)]


def view_of(dense: Any, library: str, how: str) -> strided.Strided:
    """A matrix, or a vector, of a library in a layout, as kernels are given it."""
    return strided.strided(numpy_view(dense, how) if library == "numpy" else torch_view(torch.from_numpy(dense), how))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("library", "how"), VIEWS)
def test_strides_that_leave_a_view(library: str, how: str) -> None:
    k = kernel("def k(x: f64[const], y: f64[mut], s: i64, n: i64):\n    for i in range(n):\n        y[0] += x[i * s]\n")
    view = view_of(np.arange(60.0).reshape(12, 5), library, how)
    reach = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    own, compiled = view.strides[0], compile_checked(k)
    refused = 0
    for stride in (own, -own, 2 * own, own + 1, own - 1, 0, 1, 10**6, -(10**6)):
        words = compiled.pack([bounded_address(view.owner, view.address), np.zeros(1), stride, 12])
        if low <= 11 * stride <= high:
            assert compiled.run(words) == 0
        else:
            refused += 1
            with pytest.raises(CompilerBug, match=r"index -?\d+ of x, which has \d+ elements"):
                compiled.run(words)
    assert refused >= 2


WRONG_STRIDES = """
import sys
sys.path.insert(0, sys.argv[1])
import json
import numpy as np, openwork as ow
from openwork.errors import CompilerBug
from openwork.ir.index_text import parse
from openwork.runtime.contract import contract
from test_checked import VIEWS, view_of
A = ow.random((96, 96), 0.3, format="csr", rng=0)
a, rng = A.to_numpy(), np.random.default_rng(0)
refused = {}
for text, shape, oracle in (
    ("y[i,k] += A[i,j] * X[j,k]", (96, 8), lambda x: a @ x),
    ("y[i,k] += A[i,j] * X[k,j]", (8, 96), lambda x: a @ x.T),
    ("y[i] += A[i,j] * X[j]", (96,), lambda x: a @ x),
):
    stmt, dense = parse(text), rng.random(shape)
    for library, how in VIEWS:
        view = view_of(dense, library, how)
        want = oracle(np.array(view.owner))
        def run(strides):
            "What a kernel gives of the view, read with these strides."
            got = contract(stmt, {"A": A._storage, "X": view._replace(strides=strides)}, "f64", view.owner)
            np.testing.assert_allclose(np.array(got), want)
        run(view.strides)
        for dim, stride in enumerate(view.strides):
            for wrong in (2 * stride, stride + 1, stride // 2, -stride, stride - 8):
                try:
                    run((*view.strides[:dim], wrong, *view.strides[dim + 1 :]))
                except CompilerBug as error:
                    refused.setdefault(f"{text} {library} {how}", str(error))
print(json.dumps(refused))
"""


@pytest.mark.ci
def test_wrong_strides_give_no_wrong_values() -> None:
    """An operand read with other strides than its own is packed, which needs none, or refused, even where what is read
    lies between the ends of its memory."""
    refused = json.loads(in_checked_mode(WRONG_STRIDES, str(Path(__file__).parent)))
    for library, how in VIEWS:
        message = refused[f"y[i] += A[i,j] * X[j] {library} {how}"]
        assert re.match(
            r"checked kernel drive: stride -?\d+ of dimension 0 of X, whose elements lie -?\d+ apart\n", message
        )


def test_an_address_without_a_length_is_refused() -> None:
    compiled = compile_checked(kernel("def k(y: f64[mut]):\n    y[0] = 1.0\n"), "the key")
    with pytest.raises(CompilerBug, match="the length of buffer y is not known\n  key: the key"):
        compiled.run([np.zeros(1).ctypes.data])


@pytest.mark.parametrize("apart_", [False, True])
def test_violations_on_any_thread(apart_: bool) -> None:
    text = ROWS + "    for i in range(lo, hi):\n        if i >= n:\n            y[i] = x[i + 100]\n"
    compiled = compile_checked(kernel(text), "key")
    x, y = np.zeros(64), np.zeros(64)
    before = get_num_threads()
    set_num_threads(3)
    try:
        bounds = list(range(0, 65, 8))
        for first in (40, 56, 0):
            words = compiled.pack([x, y, first])
            ways = (
                lambda w: parallel(compiled, w, bounds),
                lambda w: parallel_private(compiled, [w] * 8, list(pairwise(bounds))),
            )
            with pytest.raises(CompilerBug, match=r"index 1\d\d of x, which has 64 elements\n  line 4"):
                ways[apart_](words)
        parallel(compiled, compiled.pack([x, y, 64]), bounds)
    finally:
        set_num_threads(before)


def arrays(k: Kernel, fmt: str) -> dict[str, object]:
    """What the kernel of a product runs on: a matrix of 3 rows, 4 columns and 5 elements."""
    import openwork as ow

    dense = np.array([[1.0, 0, 2, 0], [0, 0, 0, 3], [4, 0, 0, 5]])
    s = ow.asarray(dense, format=fmt)._storage
    found: dict[str, object] = {"x": np.arange(1.0, 5), "y": np.zeros(3)}
    for p in k.params:
        name, at = p.name[2:5], p.name[-1]
        if p.name == "A_vals":
            found[p.name] = s.values
        elif p.name.startswith("A_size"):
            found[p.name] = s.shape[int(at)]
        elif p.name.startswith("A_"):
            found[p.name] = (s.pos if name == "pos" else s.crd)[int(at)]
        elif p.name not in found:
            found[p.name] = {"n_i": 3, "n_j": 4}.get(p.name, 3)
    return found


@pytest.mark.parametrize("fmt", ["csr", "coo"])
def test_what_the_interpreter_refuses_machine_code_does(fmt: str) -> None:
    """Broken in one place each: whatever reads or writes out of bounds ends in CompilerBug both ways, nothing crashes."""
    k = build_kernel(SPMV, {"A": fmt}, {})
    refused = 0
    for what, broken in islice(mutants(k), 0, None, 5):
        broken = fuelled(broken, 200)
        outcomes = []
        for machine in (False, True):
            given = arrays(k, fmt)
            values = [given[p.name] for p in broken.params]
            hi = 3 if fmt == "csr" else 5
            try:
                if machine:
                    compiled = compile_checked(broken, what)
                    compiled.run(compiled.pack(values), 0, hi)
                else:
                    interpret(broken, given, 0, hi) if broken.ranged else interpret(broken, given)
                outcomes.append(given["y"].tolist())
            except CompilerBug:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1], what
        refused += outcomes[0] is None
    assert refused >= 1


@pytest.mark.parametrize("fmt", ["csr", "coo", "bsr(2, 3)", "dia", "ell(4)", "bitmap", "csc"])
def test_lines_are_those_of_the_text_and_the_text_is_the_same(fmt: str) -> None:
    k = build_kernel(SPMV, {"A": fmt}, {})
    text = show(k).split("\n")
    for site in sites(k):
        assert text[site.line - 1].strip() == site.text
        assert site.subject in site.text or site.kind == "cast"
    plain = compile_checked(k)
    assert plain.llvm == emit(k)
    assert plain.loops == show(k)


def in_checked_mode(script: str, *arguments: str) -> str:
    env = {**os.environ, "OPENWORK_CHECKED": "1"}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


BROKEN = """
import json, sys
import numpy as np, openwork as ow
from openwork.codegen import cache
from openwork.errors import CompilerBug
from openwork.ir.loop import For, If, Store, While
from openwork.ir.ops import const, op
from dataclasses import replace

real = cache.get
def shifted(body):
    "Every store of a value, a position or a coordinate a page behind where it belongs: a lowering that counts wrongly."
    out = []
    for s in body:
        match s:
            case Store(buffer, index, value):
                s = Store(buffer, op("add", index, const(100_000)), value)
            case For() | While():
                s = replace(s, body=shifted(s.body))
            case If():
                s = replace(s, then=shifted(s.then), orelse=shifted(s.orelse))
        out.append(s)
    return tuple(out)
def get(key, build):
    def broken():
        k = build()
        return replace(k, body=shifted(k.body))
    return real(f"broken {key}", broken)
ow.set_num_threads(2)
rng = np.random.default_rng(0)
dense = rng.random((300, 300)) * (rng.random((300, 300)) < 0.4)
A, C, x = ow.asarray(dense, format="csr"), ow.asarray(dense, format="csc"), np.ones(300)
cache.get = get
found = {}
for name, f in {
    "product": lambda: A @ x, "scattered product": lambda: C @ x, "merge": lambda: A + C.T.asformat("csr"),
    "two products": lambda: A @ A, "conversion": lambda: A.asformat("csc"),
    "gathered": lambda: A[[5, 3, 5]],
}.items():
    try:
        f()
        found[name] = None
    except CompilerBug as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.mark.ci
def test_broken_lowerings_are_caught() -> None:
    found = json.loads(in_checked_mode(BROKEN))
    for name, message in found.items():
        assert message is not None, f"{name} went through"
        first, line, key = message.split("\n")[:3]
        assert re.fullmatch(r"checked kernel \w+: index 1\d+ of \w+, which has \d+ elements", first), message
        assert re.match(r"  line \d+: .*100000", line), message
        assert re.match(r"  key: checked \| .*broken ", key), message


REPRESENTATIVE = """
import numpy as np, openwork as ow, tempfile, os, torch
from openwork.codegen import cache
from openwork.codegen.checked import CheckedExecutable
rng = np.random.default_rng(1)
def dense(*shape, density=0.3):
    return rng.random(shape) * (rng.random(shape) < density)
def same(got, want):
    got = got.detach().to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
ow.set_num_threads(2)
for shape in ((7, 9), (400, 300)):
    a, b = dense(*shape), dense(*shape)
    x = rng.random(shape[1])
    for spec in ("csr", "coo", "csc", "bsr(2, 3)") if shape[0] == 7 else ("csc",):
        A = ow.asarray(a, format=spec)
        for _ in range(2):
            same(A @ x, a @ x)
        same(ow.asarray(a, format="csr").asformat(spec), a)
    for A, B in ((a, b), (torch.from_numpy(a), torch.from_numpy(b))):
        A, B = ow.asarray(A, format="csr"), ow.asarray(B, format="csr")
        for _ in range(2):
            same(A + B, a + b)
            same(A @ B.T, a @ b.T)
            same(A.sum(axis=0), a.sum(axis=0))
        same(A * B, a * b)
        same(A[[1, 0], 2:], a[[1, 0], 2:])
        same(A[:, [1, 0]], a[:, [1, 0]])
        same(ow.concat([A, B]).asformat("csc"), np.concatenate([a, b]))
    same(ow.sddmm(A, np.ones((shape[0], 4)), np.ones((4, shape[1]))), (a != 0) * 4.0)
with tempfile.TemporaryDirectory() as folder:
    ow.write(os.path.join(folder, "a.mtx"), A)
    same(ow.read(os.path.join(folder, "a.mtx")), a)
assert all(isinstance(e, CheckedExecutable) for e in cache._MEMORY.values())
assert all(key.startswith("checked | ") for key in cache._MEMORY)
print(len(cache._MEMORY))
"""


@pytest.mark.ci
def test_representative_operations() -> None:
    """Products, sums, merges, conversions, indexing and files, small and on threads: nothing is out of bounds."""
    assert int(in_checked_mode(REPRESENTATIVE)) > 20
