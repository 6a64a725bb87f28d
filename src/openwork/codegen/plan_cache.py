"""Tables of plans by what decides them, such as signatures, statements and fill kinds: bounded, counted, emptied when
kernels go.

A plan can be made again at any moment; a table only saves the time. What belongs to one structure is kept with that
(`storage.structure.Plans`), what serves all tensors of a kind here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["PlanCache", "forget_plans", "plan_counts", "planned"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 1024
"""Entries of a table; the oldest go first."""

_TABLES: list[PlanCache[Any, Any]] = []


class PlanCache(dict[K, V]):
    """A table of plans; looked up as a dict, filled by `keep`."""

    __slots__ = ("limit", "made", "name")

    def __init__(self, name: str, limit: int = LIMIT) -> None:
        super().__init__()
        self.name, self.limit, self.made = name, limit, 0
        _TABLES.append(self)

    def keep(self, key: K, plan: V) -> V:
        """The plan, which is found under the key from now on."""
        if len(self) >= self.limit:
            for oldest in list(self)[: 1 + self.limit // 16]:
                self.pop(oldest, None)
        self[key] = plan
        self.made += 1
        return plan


def planned(name: str) -> Callable[[F], F]:
    """A function of hashable arguments whose results are kept in a table of plans."""

    def mark(function: F) -> F:
        table: PlanCache[Any, Any] = PlanCache(name)

        @wraps(function)
        def call(*key: Any) -> Any:
            found = table.get(key)
            return table.keep(key, function(*key)) if found is None else found

        return cast("F", call)

    return mark


def forget_plans() -> None:
    """Empty all tables."""
    for table in _TABLES:
        table.clear()


def plan_counts() -> dict[str, tuple[int, int, int]]:
    """For each table by name how many plans it has, how many it may have, and how many were made."""
    return {table.name: (len(table), table.limit, table.made) for table in _TABLES}
