"""A table of device targets for the emitter of kernels with a grid: SPIR-V, NVIDIA's PTX, AMD's GCN.

Address spaces 1 and 3 are global and local memory on all of them. A row gives the texts of LLVM IR for the rest:
numbers of group and item, a barrier, a shuffle of 32-bit words among the items of a subgroup, scopes of atomics.
"""

from __future__ import annotations

from ..classes import frozen
from .target import Target

__all__ = ["DEVICES", "Device", "device"]


@frozen
class Device:
    """A kind of device.

    convention : of kernels; attributes : of a kernel, with {items} of a group and {subgroup}
    metadata : (name, node) of a kernel, with the same
    numbers : (name, instruction) of `group`, `groups` and `item`; i32 are widened. AMD's has no `groups`, which is in
        memory there: no kernel of ours asks
    barrier : the lines of a barrier
    shuffle : the i32 value in the lane that is exclusive or {mask} away, of {value}, by lines, the last one its result
    scope : of atomics, whose memory all items see
    adds_floats : the types of floating-point numbers that an atomic instruction adds
    builtins : whether mathematical functions are those of OpenCL C, by mangled names; else our own
    declarations : of functions that the texts name
    """

    target: Target
    convention: str
    attributes: str
    metadata: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]
    barrier: tuple[str, ...]
    shuffle: tuple[str, ...]
    scope: str
    adds_floats: tuple[str, ...]
    builtins: bool
    declarations: tuple[str, ...]


_SPIRV_NUMBERS = (
    ("group", "call spir_func i64 @_Z12get_group_idj(i32 0)"),
    ("groups", "call spir_func i64 @_Z14get_num_groupsj(i32 0)"),
    ("item", "call spir_func i64 @_Z12get_local_idj(i32 0)"),
)
_PTX = "call i32 @llvm.nvvm.read.ptx.sreg."
_FENCE = 'fence syncscope("workgroup") '


def _spirv() -> Device:
    return Device(
        Target("spirv", "spirv64-unknown-unknown", "", ""), "spir_kernel", "nounwind",
        (
            ("reqd_work_group_size", "!{{i32 {items}, i32 1, i32 1}}"),
            ("intel_reqd_sub_group_size", "!{{i32 {subgroup}}}"),
        ),
        _SPIRV_NUMBERS,
        ("call spir_func void @_Z22__spirv_ControlBarrierjjj(i32 2, i32 2, i32 784) convergent",),
        ("call spir_func i32 @_Z21sub_group_shuffle_xorij(i32 {value}, i32 {mask}) convergent",),
        'syncscope("device")', (), True,
        (
            *(f"declare spir_func i64 @{text.split('@')[1].split('(')[0]}(i32)" for _, text in _SPIRV_NUMBERS),
            "declare spir_func void @_Z22__spirv_ControlBarrierjjj(i32, i32, i32) convergent",
            "declare spir_func i32 @_Z21sub_group_shuffle_xorij(i32, i32) convergent",
        ),
    )  # fmt: skip


def _ptx(sm: str) -> Device:
    return Device(
        Target("ptx", "nvptx64-nvidia-cuda", sm, ""), "ptx_kernel", 'nounwind "nvvm.maxntid"="{items}"', (),
        (("group", f"{_PTX}ctaid.x()"), ("groups", f"{_PTX}nctaid.x()"), ("item", f"{_PTX}tid.x()")),
        ("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",),
        ("call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {value}, i32 {mask}, i32 31)",),
        'syncscope("device")', ("f32", "f64"), False,
        (
            *(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()" for name in ("ctaid.x", "nctaid.x", "tid.x")),
            "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent",
            "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32) convergent",
        ),
    )  # fmt: skip


def _amdgcn(cpu: str) -> Device:
    return Device(
        Target("amdgcn", "amdgcn-amd-amdhsa", cpu, "", ", addrspace(5)"), "amdgpu_kernel",
        'nounwind "amdgpu-flat-work-group-size"="{items},{items}"', (),
        (
            ("group", "call i32 @llvm.amdgcn.workgroup.id.x()"),
            ("item", "call i32 @llvm.amdgcn.workitem.id.x()"),
        ),
        (_FENCE + "release", "call void @llvm.amdgcn.s.barrier()", _FENCE + "acquire"),
        (
            "call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)", "xor i32 {last}, {mask}", "shl i32 {last}, 2",
            "call i32 @llvm.amdgcn.ds.bpermute(i32 {last}, i32 {value})",
        ),
        'syncscope("agent")', ("f32", "f64"), False,
        (
            "declare i32 @llvm.amdgcn.workgroup.id.x()", "declare i32 @llvm.amdgcn.workitem.id.x()",
            "declare void @llvm.amdgcn.s.barrier() convergent",
            "declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)",
            "declare i32 @llvm.amdgcn.ds.bpermute(i32, i32) convergent",
        ),
    )  # fmt: skip


DEVICES = {"opencl": _spirv(), "cuda": _ptx("sm_80"), "amd": _amdgcn("gfx1030")}
"""The rows, each for the least that it asks of a machine: SPIR-V 1.2, compute capability 8.0, subgroups of 32."""


def device(name: str, cpu: str | None = None) -> Device:
    """A row by name; of a GPU of another architecture, "sm_90" say, where one is given."""
    if cpu is None:
        return DEVICES[name]
    return {"cuda": _ptx, "amd": _amdgcn}[name](cpu)
