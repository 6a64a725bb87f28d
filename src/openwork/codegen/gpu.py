"""A kernel -> PTX, NVIDIA's assembly text, by LLVM's NVPTX target.

A ranged kernel runs with one thread per index of [lo, hi), grid-stride; any other runs on one thread. The entry
takes the kernel's parameters in order (buffers as pointers, scalars by value, c64 as two floats), then lo and hi,
and a pointer to an i64 status that holds the greatest status of any thread (null: not wanted).
"""

from __future__ import annotations

from ..ir.loop import Buffer, Kernel
from . import engine
from .emit import Emitter
from .emit_builder import register_type
from .target import nvptx

__all__ = ["ptx"]

_ENTRY = """define ptx_kernel void @"{name}"({params}) nounwind {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ncta = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %tid64 = zext i32 %tid to i64
  %ntid64 = zext i32 %ntid to i64
  %cta64 = zext i32 %cta to i64
  %ncta64 = zext i32 %ncta to i64
  %skip = mul nuw nsw i64 %cta64, %ntid64
  %me = add nuw nsw i64 %skip, %tid64
  %stride = mul nuw nsw i64 %ncta64, %ntid64
  %first = add nsw i64 %lo, %me
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %after, %next ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %exit
body:
  %end = add nsw i64 %i, 1
  %code = call i64 @"{name}.body"({args})
  %bad = icmp ne i64 %code, 0
  %wanted = icmp ne ptr %status, null
  %tell = and i1 %bad, %wanted
  br i1 %tell, label %note, label %next
note:
  %old = atomicrmw umax ptr %status, i64 %code monotonic
  br label %next
next:
  %after = add nsw i64 %i, %stride
  br label %head
exit:
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()"""


def ptx(kernel: Kernel, sm: str = "sm_80") -> str:
    """PTX text of `kernel` for GPUs of compute capability `sm` and later.

    Mathematical functions become calls of libdevice (`__nv_exp`), to be linked by the caller.
    Raises UnsupportedError for what a GPU cannot do (functions of complex values other than arithmetic).
    """
    return engine.assembly(emit_gpu(kernel, sm), nvptx(sm))


def emit_gpu(kernel: Kernel, sm: str) -> str:
    """LLVM IR text of `kernel` for a GPU."""
    params, args = [], []
    for p in kernel.params:
        if isinstance(p, Buffer):
            params.append(f"ptr noalias captures(none) %b.{p.name}")
            args.append(f"ptr %b.{p.name}")
            continue
        for i in range(2 if p.scalar in ("c64", "c128") else 1):
            word = f"{register_type(p.scalar)} %p.{p.name}.{i}"
            params.append(word)
            args.append(word)
    params += ["i64 %lo", "i64 %hi", "ptr %status"]
    if kernel.ranged:
        args += ["i64 %i", "i64 %end"]
    text = _ENTRY.format(name=kernel.name, params=", ".join(params), args=", ".join(args))
    return Emitter(kernel, nvptx(sm)).module(text)
