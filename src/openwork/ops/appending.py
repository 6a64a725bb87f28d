"""Conversion by appending: elements that come in the target's order."""

from __future__ import annotations

from collections.abc import Callable

from ..compiler.conversion.append import Pass, append_kernel
from ..compiler.conversion.stream import Stream
from ..compiler.conversion.target import Kind, Run
from ..ir.loop import Kernel
from ..storage.storage import Storage
from .assembly import Assembly, is_zero

__all__ = ["append", "passes"]


def append(
    out: Assembly,
    stream: Stream,
    count: int | None,
    kind: str = "append",
    kept: Storage | None = None,
    owned: bool = False,
) -> Storage:
    """Assemble from elements in the target's order; `count` is their number where it is known.

    Of `kept`, the source, buffers that the result holds too are copied as they are, or taken where it is `owned`.
    """
    recipe, stage = out.recipe, out.stage
    given = recipe.given if kept is not None else None
    kept = kept if given is not None else None

    def build(task: Pass) -> Callable[[], Kernel]:
        name = f"append_{task.value}"
        levels = None if given is None else tuple(given)
        return lambda: append_kernel(
            name, stream, recipe.target, task, unique=stage.unique, keep=stage.keep, given=levels
        )

    chains = [run for run in out.runs if run.kind is Kind.CHAIN]
    sizes: dict[Run, int] = {}
    one_each = out.runs[-1].kind is Kind.CHAIN and (stage.unique or stage.keep)
    if len(chains) == 1 and one_each and count is not None:
        sizes[chains[0]] = count
    elif chains:
        out.check(recipe.run(f"{kind} count", build(Pass.COUNT), out.words))
        sizes = {run: out.total(number) for number, run in enumerate(out.runs) if run.kind is Kind.CHAIN}
    out.allocate(sizes, kept, owned)
    for task in passes(out):
        out.check(recipe.run(f"{kind} {task.value}", build(task), out.words))
    return out.finish(sizes)


def passes(out: Assembly) -> tuple[Pass, ...]:
    """CLEAR goes first where elements are added to places that hold a fill value that is not zero."""
    adds = not out.stage.unique and out.runs and out.runs[-1].kind is Kind.LOCATED
    return (Pass.CLEAR, Pass.FILL) if adds and not is_zero(out.fill_value) else (Pass.FILL,)
