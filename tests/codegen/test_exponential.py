"""exp, exp2, expm1 and tanh in machine code: errors against extended precision, the same for vectors and scalars."""

from __future__ import annotations

import numpy as np
import pytest

from openwork.codegen.cache import compile_kernel
from openwork.codegen.emit_exponential import EXPONENTIALS, is_expanded
from openwork.codegen.executable import run
from openwork.codegen.target import Target, host
from openwork.ir.text import parse

ULPS = {"exp": 1.0, "exp2": 1.0, "expm1": 2.0, "tanh": 3.0}
RANGE = {"f32": (-104, 89), "f64": (-746, 710)}
DTYPES = {"f32": np.float32, "f64": np.float64}
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 5e-324, -1e-40, 1e-310, 1e4, -1e4, 88.73, -103.98, 709.79, -745.2]
OUTS = [f"{op}{lanes}" for op in EXPONENTIALS for lanes in (1, 8, 16)]


def computed(scalar: str, x: np.ndarray) -> dict[str, np.ndarray]:
    """Every operation of x, an element at a time and in vectors."""
    params = ", ".join(f"{out}: T[mut]" for out in OUTS)
    vectors = "".join(
        f"    for i in range(0, n, {lanes}):\n        vstore({op}{lanes}, i, {op}(vload(x, i, {lanes})))\n"
        for op in EXPONENTIALS
        for lanes in (8, 16)
    )
    scalars = "".join(f"        {op}1[i] = {op}(x[i])\n" for op in EXPONENTIALS)
    text = f"def f(x: T[const], {params}, n: i64):\n{vectors}    for i in range(0, n):\n"
    results = {out: np.empty_like(x) for out in OUTS}
    assert run(compile_kernel(parse(text + scalars, T=scalar)), {"x": x, **results, "n": len(x)}) == 0
    return results


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision")
@pytest.mark.skipif(not is_expanded("exp", host()), reason="needs fused products")
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_errors_in_units_in_the_last_place(scalar: str) -> None:
    rng, dtype = np.random.default_rng(7), DTYPES[scalar]
    spread = (
        rng.uniform(*RANGE[scalar], 2000),
        rng.uniform(-2, 2, 2000),
        rng.normal(size=992) * 10 ** rng.uniform(-9, 1, 992),
    )
    x = np.concatenate([*spread, EDGES, [1.0]]).astype(dtype)
    with np.errstate(all="ignore"):
        got = computed(scalar, x)
        for op in EXPONENTIALS:
            want = getattr(np, op)(x.astype(np.longdouble))
            rounded, mine = want.astype(dtype), got[f"{op}1"]
            np.testing.assert_array_equal(np.isnan(mine), np.isnan(want))
            for lanes in (8, 16):
                np.testing.assert_array_equal(mine.view(np.uint8), got[f"{op}{lanes}"].view(np.uint8))
            edge = ~np.isfinite(rounded) | ~np.isfinite(mine)
            np.testing.assert_array_equal(mine[edge], rounded[edge])
            np.testing.assert_array_equal(np.signbit(mine[mine == 0]), np.signbit(rounded[mine == 0]))
            error = np.abs(mine - want)[~edge] / np.spacing(np.abs(rounded[~edge]))
            assert error.max() <= ULPS[op], (op, x[~edge][error.argmax()])


def test_targets() -> None:
    x86 = "x86_64-unknown-linux-gnu"
    assert is_expanded("exp", Target("cpu", x86, "", "+sse2,+fma"))
    assert not is_expanded("exp", Target("cpu", x86, "", "+sse2,-fma"))
    assert not is_expanded("log", Target("cpu", x86, "", "+fma"))
    assert is_expanded("exp", Target("ptx", "nvptx64-nvidia-cuda", "sm_80", ""))
