"""Every operation on every scalar type, one lane and several: the machine code computes what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import emit, emit_memory
from openwork.codegen.cache import compile_kernel
from openwork.codegen.executable import run
from openwork.codegen.target import Target, host
from openwork.errors import CompilerBug
from openwork.ir import interpret, ops
from openwork.ir.loop import Assign, Buffer, Cast, For, Kernel, Let, Load, Op, Scalar, Store, Var
from openwork.ir.types import COMPLEX, FLOATS, I64, INTEGERS, SCALARS, Type
from openwork.ir.verify import verify

ml_dtypes = pytest.importorskip("ml_dtypes")
COUNT = 32
BINARY = (*ops.ARITHMETIC, *ops.BITWISE, *ops.COMPARISONS, *ops.LOGICAL)
INEXACT = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5, "f64": 1e-13, "c64": 1e-4, "c128": 1e-12}


def dtype(scalar: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if scalar == "bf16" else ops_dtype(scalar))


def ops_dtype(scalar: str) -> str:
    names = {"bool": "bool", "c64": "complex64", "c128": "complex128"}
    return names.get(scalar) or {"i": "int", "u": "uint", "f": "float"}[scalar[0]] + scalar[1:]


def samples(scalar: str, seed: int) -> np.ndarray:
    """Ordinary values among the edges of the type."""
    rng = np.random.default_rng(seed)
    if scalar == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    if scalar in INTEGERS:
        info = np.iinfo(dtype(scalar))
        edges = [info.min, info.max, 0, 1, info.max - 1, max(info.min, -1), 3, 7]
        ordinary = rng.integers(max(info.min, -9), 10, COUNT - len(edges))
        return rng.permutation(np.array([*edges, *ordinary], dtype(scalar)))
    if scalar in FLOATS:
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0]
        ordinary = rng.normal(size=COUNT - len(edges)) * 3
        return rng.permutation(np.array([*edges, *ordinary])).astype(dtype(scalar))
    edges = np.array([0, 1, -1, 1j, -1j, 2 + 3j])
    ordinary = rng.normal(size=(2, COUNT - len(edges)))
    return rng.permutation(np.concatenate([edges, ordinary[0] + 1j * ordinary[1]])).astype(dtype(scalar))


def kernel(op: str, scalar: str, arity: int, lanes: int) -> Kernel:
    index = Var("i", I64)
    args = [Load(name, index, Type(scalar, lanes)) for name in "abc"[:arity]]
    if op == "select":
        args[0] = ops.op("ne", args[0], ops.const(0, scalar))
    value = ops.op(op, *args)
    params = [Buffer(name, scalar) for name in "abc"[:arity]]
    body = (Let("value", value), Store("out", index, Var("value", value.type)))
    loop = For("i", ops.const(0), ops.const(COUNT), body, step=lanes)
    return Kernel("op", (*params, Buffer("out", value.type.scalar, True)), (loop,))


def agree(op: str, k: Kernel, count: int, scale: float, **arrays: np.ndarray) -> None:
    """Run both ways on the same arrays; values must agree, exactly where the operation is exact."""
    verify(k)
    scalar = k.params[-1].scalar
    expected, got = (np.full(count, 7, dtype(scalar)) for _ in range(2))
    assert interpret.run(k, {**arrays, "out": expected}) == 0
    assert run(compile_kernel(k), {**arrays, "out": got}) == 0
    if scalar in INEXACT:
        wide = complex if scalar in COMPLEX else float
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=scale, atol=scale, err_msg=op)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=op)


def supported(op: str, scalar: str) -> bool:
    """Whether the operation means anything on the type."""
    if scalar == "bool":
        return op in (*ops.LOGICAL, *ops.COMPARISONS, *ON_BOOLS)
    if op in (*ops.BITWISE, "bnot"):
        return scalar in INTEGERS
    if op in ("ctz", "popcount"):
        return scalar in INTEGERS
    if op in ("floor", "ceil", "trunc", "round") and scalar in INTEGERS:
        return True
    if op in ("div", "reciprocal", "floor", "ceil", "trunc", "round") or op in FLOAT_ONLY:
        return scalar in FLOATS or (scalar in COMPLEX and op not in REAL_ONLY)
    return scalar not in COMPLEX or op not in REAL_ONLY


ON_BOOLS = (
    "band", "bor", "bxor", "bnot", "min", "max", "add", "mul", "select", "isnan", "isfinite", "isinf", "floor", "ceil",
    "trunc", "round", "real", "conj",
)  # fmt: skip
FLOAT_ONLY = (
    "sqrt", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "atan2", "hypot", "copysign",
)  # fmt: skip
REAL_ONLY = (
    "erf", "atan2", "hypot", "copysign", "floor", "ceil", "trunc", "round", "floordiv", "mod", "signbit",
)  # fmt: skip
CASES = [(op, scalar) for op in (*BINARY, *ops.UNARY, "select", "fma") for scalar in SCALARS if supported(op, scalar)]


def arity(op: str) -> int:
    return 3 if op in ("select", "fma") else 1 if op in ops.UNARY or op == "not" else 2


@pytest.mark.thin(289)
@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_every_operation(scalar: str, lanes: int) -> None:
    for op in [o for o, s in CASES if s == scalar]:
        n = arity(op)
        arrays = {name: samples(scalar, seed) for seed, name in enumerate("abc"[:n])}
        agree(op, kernel(op, scalar, n, lanes), COUNT, INEXACT.get(scalar, 0), **arrays)


@pytest.mark.thin(153)
@pytest.mark.parametrize("source", SCALARS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_every_cast(source: str, lanes: int) -> None:
    for target in SCALARS:
        index = Var("i", I64)
        value = Cast(Load("a", index, Type(source, lanes)), Type(target, lanes))
        loop = For("i", ops.const(0), ops.const(COUNT), (Store("out", index, value),), step=lanes)
        k = Kernel("cast", (Buffer("a", source), Buffer("out", target, True)), (loop,))
        agree(f"{source} -> {target}", k, COUNT, 0, a=samples(source, 5))


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_broadcast(scalar: str) -> None:
    value = Cast(Load("a", ops.const(3), Type(scalar)), Type(scalar, 8))
    k = Kernel("spread", (Buffer("a", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(1), value),))
    agree("broadcast", k, 10, 0, a=samples(scalar, 6))


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_gather(scalar: str) -> None:
    where = Load("where", ops.const(2), Type("i64", 8))
    k = Kernel(
        "gather",
        (Buffer("a", scalar), Buffer("where", "i64"), Buffer("out", scalar, True)),
        (Store("out", ops.const(1), Load("a", where, Type(scalar, 8))),),
    )
    agree("gather", k, 10, 0, a=samples(scalar, 6), where=np.array([9, 9, 3, 1, 1, 31, 0, 7, 30, 2]))


@pytest.mark.thin(2)
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("scalar", ["bool", "i16", "bf16", "f64", "c64"])
def test_gathers_of_processors_that_load_more_quickly(scalar: str, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lane after the other, and by the instruction: whatever this machine does."""
    for gathers in (False, True):
        monkeypatch.setattr(emit_memory, "gathers", lambda target, answer=gathers: answer)
        where = ops.cast(Load("where", ops.const(2), Type(index, 8)), "i64")
        k = Kernel(
            f"gather_{index}_{gathers}",
            (Buffer("a", scalar), Buffer("where", index), Buffer("out", scalar, True)),
            (Store("out", ops.const(1), Load("a", where, Type(scalar, 8))),),
        )
        places = np.array([9, 9, 3, 1, 1, 31, 0, 7, 30, 2], dtype(index))
        agree("gather", k, 10, 0, a=samples(scalar, 6), where=places)


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_scatter(scalar: str) -> None:
    where = Load("where", ops.const(0), Type("i64", 4))
    k = Kernel(
        "scatter",
        (Buffer("a", scalar), Buffer("where", "i64"), Buffer("out", scalar, True)),
        (Store("out", where, Load("a", ops.const(3), Type(scalar, 4))),),
    )
    agree("scatter", k, 10, 0, a=samples(scalar, 6), where=np.array([9, 0, 3, 1]))


@pytest.mark.thin(21)
@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("op", ops.REDUCTIONS)
def test_every_reduction(scalar: str, op: str) -> None:
    a = samples(scalar, 8)
    if scalar not in INTEGERS and scalar != "bool":
        a = np.where(np.isfinite(a.astype(complex)), a, 2).astype(dtype(scalar))
    for lanes in (1, 2, 8, 16):
        value = ops.op(op, Load("a", ops.const(3), Type(scalar, lanes)))
        k = Kernel("fold", (Buffer("a", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(0), value),))
        agree(op, k, 1, 10 * INEXACT.get(scalar, 0), a=a)


@pytest.mark.parametrize("op", ["hsum", "hprod"])
def test_reductions_of_complex_lanes(op: str) -> None:
    value = ops.op(op, Load("a", ops.const(3), Type("c128", 8)))
    k = Kernel("fold", (Buffer("a", "c128"), Buffer("out", "c128", True)), (Store("out", ops.const(0), value),))
    agree(op, k, 1, 1e-11, a=samples("c128", 8))


@pytest.mark.thin(20)
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("scalar", SCALARS)
def test_every_expansion(scalar: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes go where a mask is true, which is the bits of a number; with the processor's instructions and without."""
    if not wide:
        plain = Target("cpu", host().triple, host().cpu, "")
        monkeypatch.setattr(emit, "host", lambda: plain)
    for lanes in (1, 4, 8, 16):
        held = Load("bits", Var("i", I64), I64)
        numbers = ops.op("ramp", ops.cast(ops.const(0), I64.with_lanes(lanes)))
        mask = ops.op("bit", ops.cast(held, I64.with_lanes(lanes)), numbers)
        value = ops.op("expand", Load("a", ops.const(3), Type(scalar, lanes)), mask)
        at = ops.op("mul", Var("i", I64), ops.const(lanes))
        loop = For("i", ops.const(0), ops.const(4), (Store("out", at, value),))
        k = Kernel(
            f"expand{lanes}{wide}", (Buffer("bits", "i64"), Buffer("a", scalar), Buffer("out", scalar, True)), (loop,)
        )
        bits = np.array([0, -1, 0b1010011101010011, 1])
        agree("expand", k, 4 * lanes, 0, bits=bits, a=samples(scalar, 8))


@pytest.mark.thin(9)
@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("op", ["evens", "odds"])
def test_every_second_lane(scalar: str, op: str) -> None:
    for lanes in (1, 2, 8, 16):
        x, y = (Load("a", ops.const(at), Type(scalar, lanes)) for at in (3, 11))
        body = (Store("out", ops.const(0), ops.op(op, x, y)),)
        k = Kernel(f"{op}{lanes}", (Buffer("a", scalar), Buffer("out", scalar, True)), body)
        agree(op, k, lanes, 0, a=samples(scalar, 8))


@pytest.mark.thin(77)
@pytest.mark.parametrize("features", ["the host's", "+avx2", ""])
@pytest.mark.parametrize("scalar", SCALARS)
def test_every_permutation(scalar: str, features: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes by numbers that wrap around, in all widths that a processor has an instruction for, and in others."""
    if features != "the host's":
        if features and features not in host().features.split(","):
            pytest.skip(f"this processor has no {features}")
        plain = Target("cpu", host().triple, host().cpu, features)
        monkeypatch.setattr(emit, "host", lambda: plain)
    for number, (lanes, count, index) in enumerate(
        [(16, 16, "u32"), (32, 16, "u64"), (64, 16, "i32"), (16, 8, "u8"), (32, 8, "i64"), (4, 8, "i16"), (1, 4, "u32")]
    ):
        value = ops.op(
            "permute", Load("a", ops.const(0), Type(scalar, lanes)), Load("at", ops.const(0), Type(index, count))
        )
        params = (Buffer("at", index), Buffer("a", scalar), Buffer("out", scalar, True))
        k = Kernel(f"permute{number}{features or 'plain'}", params, (Store("out", ops.const(0), value),))
        at = np.random.default_rng(number).integers(-99 if index[0] == "i" else 0, 99, count).astype(dtype(index))
        agree("permute", k, count, 0, at=at, a=np.concatenate([samples(scalar, 8), samples(scalar, 9)]))


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_every_ramp(scalar: str, lanes: int) -> None:
    value = ops.op("ramp", Load("a", ops.const(3), Type(scalar, lanes)))
    k = Kernel("ramp", (Buffer("a", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(0), value),))
    agree("ramp", k, lanes, 0, a=samples(scalar, 8))


@pytest.mark.parametrize("scalar", [s for s in SCALARS if s != "c128"])
def test_every_scalar_parameter(scalar: str) -> None:
    value = Var("x", Type(scalar))
    k = Kernel("keep", (Scalar("x", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(0), value),))
    verify(k)
    for x in samples(scalar, 9):
        out = np.zeros(1, dtype(scalar))
        assert run(compile_kernel(k), [x.item() if hasattr(x, "item") else x, out]) == 0
        np.testing.assert_array_equal(out.astype(complex), np.array([x]).astype(complex))


def test_the_comparison_notices_a_difference() -> None:
    k = kernel("add", "f64", 2, 1)
    broken = kernel("sub", "f64", 2, 1)
    arrays = {"a": samples("f64", 0), "b": samples("f64", 1)}
    out = np.zeros(COUNT)
    interpret.run(k, {**arrays, "out": out})
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(out, _result(broken, arrays))


def _result(k: Kernel, arrays: dict[str, np.ndarray]) -> np.ndarray:
    out = np.zeros(COUNT)
    run(compile_kernel(k), {**arrays, "out": out})
    return out


def test_an_operation_without_meaning_is_refused() -> None:
    for op, scalar in (("sin", "i32"), ("floor", "c128"), ("band", "f64"), ("neg", "bool")):
        value = Op(op, tuple(Load("a", ops.const(0), Type(scalar)) for _ in range(arity(op))), Type(scalar))
        k = Kernel("bad", (Buffer("a", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(0), value),))
        with pytest.raises(CompilerBug, match=f"code generation: {op} is not defined on {scalar}"):
            compile_kernel(k)


EXPM1 = [
    (complex(np.inf, 0.0), complex(np.inf, 0.0)), (complex(-np.inf, np.inf), complex(-1, 0)),
    (complex(np.inf, np.inf), complex(np.inf, np.nan)), (complex(-np.inf, np.nan), complex(-1, 0)),
    (complex(np.inf, np.nan), complex(np.inf, np.nan)), (complex(np.nan, 0.0), complex(np.nan, 0.0)),
    (complex(np.nan, 1.0), complex(np.nan, np.nan)), (complex(1.0, np.inf), complex(np.nan, np.nan)),
    (complex(-np.inf, 2.0), complex(-1, 0)), (complex(np.inf, 2.0), complex(-np.inf, np.inf)),
    (complex(1000.0, 0.0), complex(np.inf, 0.0)), (complex(-0.0, -0.0), complex(-0.0, -0.0)),
]  # fmt: skip
"""The array API's special cases of expm1 of complex numbers."""


@pytest.mark.parametrize("scalar", ["c64", "c128"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_expm1_of_complex_edges(scalar: str, lanes: int) -> None:
    given, want = (np.resize(np.array(x, dtype(scalar)), COUNT) for x in zip(*EXPM1, strict=True))
    k = kernel("expm1", scalar, 1, lanes)
    compiled = np.zeros(COUNT, given.dtype)
    with np.errstate(all="ignore"):
        agree("expm1", k, COUNT, 0, a=given)
        assert run(compile_kernel(k), {"a": given, "out": compiled}) == 0
        eager = ow.expm1(ow.asarray(given)).to_numpy()
    for got in (compiled, eager):
        np.testing.assert_allclose(got.real, want.real, rtol=1e-6)
        np.testing.assert_allclose(got.imag, want.imag, rtol=1e-6)
        zero = got[len(EXPM1) - 1]
        assert np.signbit(zero.real)
        assert np.signbit(zero.imag)


def test_kernels_that_the_verifier_refuses_have_no_code() -> None:
    """What the verifier refuses, the code generator does not make code of either."""
    one = ops.const(1, "i64")
    cases = {
        "k assigns x, which is no variable in scope": Assign("x", one),
        "k uses x, which is not in scope": Store("y", one, Var("x", I64)),
        "k has no buffer z": Store("z", one, one),
        "k has no buffer w": Let("x", Load("w", one, I64)),
        "no cast from i64x4 to i64x8": Let("x", Cast(Load("y", one, Type("i64", 4)), Type("i64", 8))),
        "'one' is no expression of the loop IR": Let("x", "one"),  # type: ignore[arg-type]
    }
    for message, statement in cases.items():
        with pytest.raises(CompilerBug, match=message):
            emit.emit(Kernel("k", (Buffer("y", "i64", True),), (statement,)))


@pytest.mark.parametrize("scalar", ["f16", "bf16", "f32", "c64"])
def test_constants_beyond_the_type_are_infinite(scalar: str) -> None:
    for value in (1e39, -1e39, 65519.0, 65520.0, -65520.0, 3.4028236e38, 0.1):
        body = (Store("out", ops.const(0), ops.const(value, scalar)),)
        k = Kernel(f"constant{value}", (Buffer("out", scalar, True),), body)
        got = np.zeros(1, dtype(scalar))
        assert run(compile_kernel(k), {"out": got}) == 0
        with np.errstate(over="ignore"):
            expected = np.array([value]).astype(dtype(scalar))
        np.testing.assert_array_equal(got.real, expected.real)


@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_sums_of_negative_zeros_are_negative(scalar: str) -> None:
    for lanes in (2, 8):
        value = ops.op("hsum", Load("a", ops.const(0), Type(scalar, lanes)))
        k = Kernel(
            f"zeros{lanes}", (Buffer("a", scalar), Buffer("out", scalar, True)), (Store("out", ops.const(0), value),)
        )
        got = np.ones(1, dtype(scalar))
        assert run(compile_kernel(k), {"a": np.full(lanes, -0.0, dtype(scalar)), "out": got}) == 0
        assert got[0] == 0
        assert np.signbit(got[0])
