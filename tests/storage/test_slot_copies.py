"""Native copies of objects with slots: what they hold, what they own, and which types have none."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import short_call
from openwork.storage import slot_copies
from openwork.storage.slot_copies import copier
from openwork.storage.storage import Storage
from openwork.tensor.tensor import Tensor

pytestmark = pytest.mark.skipif(not short_call.ready(), reason="there are none, in checked mode for one")


class Slots:
    __slots__ = ("__weakref__", "a", "b", "c")


class Open:
    __slots__ = ("__dict__", "a")


class Long(int):
    pass


def slots(of: type = Slots, **values: object) -> Any:
    out = of()
    for name, value in values.items():
        setattr(out, name, value)
    return out


def test_copies_hold_and_own_what_the_template_holds() -> None:
    template, held, value = slots(a=None, b=[1]), [1], [2]
    template.b = held
    copy = copier(template, "a")
    assert copy is not None
    counts = sys.getrefcount(held), sys.getrefcount(value)
    copies = [copy(value) for _ in range(100)]
    assert all(type(x) is Slots and x.a is value and x.b is held and not hasattr(x, "c") for x in copies)
    assert (sys.getrefcount(held), sys.getrefcount(value)) == (counts[0] + 100, counts[1] + 100)
    assert all(map(gc.is_tracked, copies))
    seen = weakref.ref(copies[0])
    del copies
    assert seen() is None
    assert (sys.getrefcount(held), sys.getrefcount(value)) == counts
    assert template.a is None


def test_cycles_through_copies_are_collected() -> None:
    copy = copier(slots(a=None), "a")
    assert copy is not None
    ring: list[Any] = []
    x = copy(ring)
    ring.append(x)
    seen = weakref.ref(x)
    del x, ring
    gc.collect()
    assert seen() is None


def test_types_that_have_more_than_slots_have_no_copies() -> None:
    assert copier(slots(Open, a=1), "a") is None
    assert copier(Long(3), "real") is None


def test_storages_and_tensors_are_made_by_copies() -> None:
    a = ow.asarray(np.eye(3), format="csr")
    s = a._storage
    assert s.plans is a._storage.plans
    values = np.ones(3)
    other = s.with_own_values(values)
    assert other.values is values
    assert (other.pos, other.crd, other._plans, other._structure) == (s.pos, s.crd, s._plans, s._structure)
    assert other._addresses is None
    assert other._transposes is None
    made = Storage.maker(s.structure, "f64", 0.0)(values)
    assert made.values is values
    assert made._plans is None
    assert made.shape == (3, 3)
    t = Tensor._from_storage(made)
    assert type(t) is Tensor
    assert t._raw_storage is made
    np.testing.assert_array_equal(t.to_numpy(), np.eye(3))


def test_who_waits_for_native_code_gets_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_copies, "_native", None)
    monkeypatch.setattr(slot_copies, "_waiting", [])
    given: list[object] = []
    native: Any = object()
    slot_copies.when_native(given.append)
    assert slot_copies.copier(object(), "x") is None
    assert given == []
    slot_copies.begin(native)
    slot_copies.when_native(lambda n: given.append((n,)))
    slot_copies.begin(native)
    assert given == [native, (native,)]
