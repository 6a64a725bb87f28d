"""Kernels of the device form as LLVM IR for SPIR-V, NVIDIA's and AMD's GPUs; PTX through ptxas where that is installed."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from openwork.codegen.device_targets import DEVICES, device
from openwork.codegen.emit_device import emit_device
from openwork.codegen.emit_opencl_c import emit_opencl_c
from openwork.codegen.engine import device_assembly, device_binary
from openwork.errors import CompilerBug, UnsupportedError
from openwork.ir.loop import ATOMICS, Kernel
from openwork.ir.ops import refusal
from openwork.ir.text import parse
from openwork.ir.verify import verify

SUMS = """
def sums(n: i64, pos: i32[const], x: T[const], y: T[mut]):  # grid of 128, subgroups of 32
    t: T[128] = local
    row = group * 128 + item
    total: T = 0
    if row < n:
        for p in range(pos[row], pos[row + 1]):
            total += x[p]
    t[item] = total
    barrier()
    other = shuffle(t[127 - item], 4)
    atomic('add', y[group], other)
"""
SCALARS = ("bool", "i8", "u16", "i32", "u64", "f16", "bf16", "f32", "f64", "c64", "c128")


def kernel(scalar: str, text: str = SUMS) -> Kernel:
    return verify(parse(text, T=scalar))


def assembled(ptx: str, sm: str, folder: Path) -> str:
    """What ptxas says of PTX: registers and spills. Skips where it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    homes = [Path(p) for p in spec.submodule_search_locations or ()] if spec else []
    found = shutil.which("ptxas") or next((str(p) for home in homes for p in home.glob("*/bin/ptxas")), None)
    if found is None:
        pytest.skip("ptxas is not installed")
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    command = [found, "-v", f"-arch={sm}", "-o", str(folder / "kernel.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + ptx
    return done.stderr


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("scalar", SCALARS)
def test_every_type_becomes_code_of_every_device(scalar: str, tmp_path: Path) -> None:
    spirv = device_binary(emit_device(kernel(scalar), DEVICES["opencl"]), DEVICES["opencl"].target)
    assert spirv[:4] == b"\x03\x02\x23\x07"
    gcn = device_assembly(emit_device(kernel(scalar), DEVICES["amd"]), DEVICES["amd"].target)
    assert "s_barrier" in gcn
    assert "ds_bpermute_b32" in gcn
    for sm in ("sm_80", "sm_90", "sm_100"):
        row = device("cuda", sm)
        ptx = device_assembly(emit_device(kernel(scalar), row), row.target)
        assert f".target {sm}" in ptx
        assert ".visible .entry sums(" in ptx
        assert "shfl.sync.bfly" in ptx
        assert re.search(r"\.maxntid 128", ptx)
        assert "call" not in ptx  # no function of a library
    if scalar in ("f64", "bf16", "c64"):
        assert "Used" in assembled(ptx, "sm_100", tmp_path)


@pytest.mark.ci
def test_atomics_are_instructions_or_loops_of_compare_and_swap() -> None:
    for name in ATOMICS:
        for scalar in SCALARS[:-1]:
            if (scalar != "bool" and name in ("and", "or")) or refusal(name, scalar):
                continue
            text = (
                f"def f(y: T[mut], v: T[const]):  # grid of 128, subgroups of 32\n    atomic({name!r}, y[item], v[0])"
            )
            for row in DEVICES.values():
                made = emit_device(verify(parse(text, T=scalar)), row)
                assert ("atomicrmw" in made) != ("cmpxchg" in made)
                assert device_assembly(made, row.target)
    text = "def f(y: T[mut]):  # grid of 128, subgroups of 32\n    atomic('OP', y[item], y[0])"
    for row in DEVICES.values():
        made = emit_device(verify(parse(text.replace("OP", "add"), T="c128")), row)
        assert made.count("atomicrmw fadd") == (0 if row is DEVICES["opencl"] else 2)
    with pytest.raises(UnsupportedError, match=r"atomic mul of c128 on spirv, whose words are 64 bits"):
        emit_device(verify(parse(text.replace("OP", "mul"), T="c128")), DEVICES["opencl"])


@pytest.mark.ci
def test_functions_are_our_own_or_the_device_s_or_refused_by_name() -> None:
    text = "def f(x: T[const], y: T[mut]):  # grid of 128, subgroups of 32\n    y[item] = OP(x[item])"
    for scalar in ("f32", "f64"):
        for op in (
            "exp",
            "expm1",
            "exp2",
            "tanh",
            "sqrt",
            "floor",
            "round",
            "abs",
            "isnan",
            "sign",
            "square",
            "log",
            "log1p",
            "log2",
            "log10",
        ):
            for row in DEVICES.values():
                assert device_assembly(emit_device(parse(text, T=scalar, OP=op), row), row.target)
        for op in ("sin", "log", "log1p", "asinh", "erf"):
            made = emit_device(parse(text, T=scalar, OP=op), DEVICES["opencl"])
            assert f"_Z{len(op)}{op}{'f' if scalar == 'f32' else 'd'}(" in made
            assert device_binary(made, DEVICES["opencl"].target)
    with pytest.raises(UnsupportedError, match=r"sin of f64 on ptx\n  supported there: arithmetic, sqrt"):
        emit_device(parse(text, T="f64", OP="sin"), DEVICES["cuda"])
    with pytest.raises(UnsupportedError, match="sin of c128 values is not supported on a device"):
        emit_device(parse(text, T="c128", OP="sin"), DEVICES["opencl"])
    hypot = "def f(x: c128[const], y: f64[mut]):  # grid of 128, subgroups of 32\n    y[item] = abs(x[item])"
    assert device_assembly(emit_device(parse(hypot), DEVICES["cuda"]), DEVICES["cuda"].target)


def test_what_is_no_device_form_is_refused() -> None:
    with pytest.raises(CompilerBug, match="f has no grid"):
        emit_device(parse("def f(y: f64[mut]):\n    y[0] = 1.0"), DEVICES["cuda"])


def test_compare_and_swap_is_an_instruction_of_every_device() -> None:
    text = """
def f(y: T[mut]):  # grid of 128, subgroups of 32
    s: T[128] = local
    s[item] = T(0)
    old = swap(s[item], T(0), T(5))
    seen = swap(y[item], old, T(7))
    y[128 + item] = seen"""
    for scalar in ("i32", "u32", "i64", "u64"):
        for row in DEVICES.values():
            made = emit_device(verify(parse(text, T=scalar)), row)
            assert made.count("cmpxchg") == 2
            assert device_assembly(made, row.target)


def test_opencl_c_is_printed_and_what_it_lacks_is_refused_by_name() -> None:
    text = "def sums(x: f64[const], y: i8[mut], n: i64):  # grid of 8, subgroups of 4\n    t = group * 8 + item\n"
    source = emit_opencl_c(verify(parse(text + "    if t < n:\n        atomic('add', y[t // 3], i8(x[t]))")))
    assert "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void sums(" in source
    assert "long over_long(long x, long y)" in source
    assert "atomic_cmpxchg((volatile __global uint*)(at1 & ~3ul)" in source
    assert "convert_char_sat(v_x[v_t])" in source
    for body, match in {
        "    s = shuffle(x[t], 1)\n    y[t] = i8(s)": "OpenCL C of Shuffle",
        "    y[t] = i8(f16(x[t]))": "OpenCL C of values of f16",
    }.items():
        with pytest.raises(UnsupportedError, match=match):
            emit_opencl_c(verify(parse(text + body)))
