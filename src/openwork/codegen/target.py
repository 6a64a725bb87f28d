"""The host -> the target of code generation, a CPU; those of devices are rows of `device_targets`."""

from __future__ import annotations

from functools import cache

from ..classes import frozen
from .llvm import by_llvm, library

__all__ = ["Target", "expands", "gathers", "host", "permutes"]


@frozen
class Target:
    """A machine: LLVM's triple, CPU name and feature list.

    kind : "cpu", or the name of a device's row
    private : of a device the address space of variables on the stack, as an alloca says it
    """

    kind: str
    triple: str
    cpu: str
    features: str
    private: str = ""

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"


@cache
def host() -> Target:
    """The CPU this process runs on."""
    return by_llvm(_host)


def _host() -> Target:
    llvm = library()
    return Target("cpu", llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def expands() -> bool:
    """Whether this CPU has an instruction that expands vectors by a mask."""
    return {"+avx512f", "+avx512vl"} <= set(host().features.split(","))


def permutes() -> int:
    """The bytes of the widest vectors whose lanes this CPU permutes by one instruction; 0 where there is none."""
    features = set(host().features.split(","))
    return 64 if "+avx512f" in features else 32 if "+avx2" in features else 0


_GATHERS = frozenset(("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids"))
"""CPUs whose gathers of eight elements take less than eight loads: not AMD's, nor those of Intel's that were slowed
down for safety."""


def gathers(target: Target | None = None) -> bool:
    """Whether this CPU, or that of a target, gathers faster than it loads element by element."""
    return (host() if target is None else target).cpu in _GATHERS
