"""What the machine code looks like: vector width, fused multiply-adds, hints, PTX."""

from __future__ import annotations

import re

import pytest

from openwork.codegen import engine
from openwork.codegen.emit import emit
from openwork.codegen.target import Target, host
from openwork.errors import CompilerBug
from openwork.ir.text import parse

SPMM = """
def spmm(lo: i64, hi: i64, n: i64, pos: i32[const], crd: i32[const], A: f64[const], B: f64[const], C: f64[mut]):
    for i in range(lo, hi):
        for j in range(0, n, 8):
            s: f64x8 = broadcast(0.0, 8)
            for p in range(pos[i], pos[i + 1]):
                s += A[p] * vload(B, crd[p] * n + j, 8)
            vstore(C, i * n + j, s)
"""
DOT = """
def dot(n: i64, x: f64[const], y: f64[const], out: f64[mut]):
    s: f64 = 0.0
    for i in range(0, n):  # HINTS
        s += x[i] * y[i]
    out[0] = s
"""


def x86(cpu: str) -> Target:
    if not host().triple.startswith("x86_64"):
        pytest.skip("needs LLVM's x86 target")
    return Target("cpu", host().triple, cpu, "")


@pytest.mark.parametrize("cpu", ["skylake-avx512", "sapphirerapids", "znver4"])
def test_explicit_vectors_use_whole_registers(cpu: str) -> None:
    asm = engine.assembly(emit(parse(SPMM)), x86(cpu))
    assert re.search(r"vfmadd231pd\s.*zmm", asm)
    assert "ymm" not in asm


def test_narrower_machines_split_them() -> None:
    asm = engine.assembly(emit(parse(SPMM)), x86("haswell"))
    assert re.search(r"vfmadd231pd\s.*ymm", asm)
    assert "zmm" not in asm


def test_sums_are_vectorised_only_where_they_may_be_reordered() -> None:
    for reassociate, hint, packed in ((False, "", False), (True, "", True), (True, "novector", False)):
        kernel = parse(DOT.replace("# HINTS", f"# {hint}" if hint else ""), reassociate=reassociate)
        asm = engine.assembly(emit(kernel), x86("znver4"))
        assert bool(re.search(r"vfmadd\d+pd", asm)) == packed, (reassociate, hint)
        assert re.search(r"vfmadd\d+[ps]d", asm)


def test_hints_become_loop_metadata() -> None:
    text = emit(parse(DOT.replace("HINTS", "vector, unroll:4")))
    assert '!{!"llvm.loop.vectorize.enable", i1 true}' in text
    assert '!{!"llvm.loop.unroll.count", i32 4}' in text


def test_the_text_of_a_small_kernel() -> None:
    assert emit(parse("def inc(y: i32[mut], i: i64):\n    y[i + 1] += 2"), x86("znver4")).split("\n", 1)[1] == INC


INC = """\
define internal i64 @"inc.body"(ptr noalias captures(none) %b.y, i64 %p.i.0) noinline nounwind mustprogress {
entry:
  %a1 = alloca i64
  store i64 0, ptr %a1
  %t2 = add nsw i64 %p.i.0, 1
  %t3 = add nsw i64 %p.i.0, 1
  %t4 = getelementptr inbounds i32, ptr %b.y, i64 %t3
  %t5 = load i32, ptr %t4, align 4
  %t6 = add i32 %t5, 2
  %t7 = getelementptr inbounds i32, ptr %b.y, i64 %t2
  store i32 %t6, ptr %t7, align 4
  br label %exit
exit:
  %t8 = load i64, ptr %a1
  ret i64 %t8
}
define i64 @"inc"(ptr captures(none) readonly %args, i64 %lo, i64 %hi) nounwind {
entry:
  %t1 = getelementptr inbounds i64, ptr %args, i64 0
  %t2 = load ptr, ptr %t1
  %t3 = getelementptr inbounds i64, ptr %args, i64 1
  %t4 = load i64, ptr %t3
  %t5 = call i64 @"inc.body"(ptr %t2, i64 %t4)
  ret i64 %t5
}
"""


def test_text_that_llvm_refuses_is_our_fault() -> None:
    for text in ("define void @f( {", "define i64 @f(i64 %x) {\n  ret i32 %x\n}\n"):
        with pytest.raises(CompilerBug, match="LLVM refuses the text of a kernel"):
            engine.to_object(text)
