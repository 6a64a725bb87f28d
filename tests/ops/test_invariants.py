from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invariant_cases import BREAKS, LAYOUTS, Break, make

from openwork.codegen import cache
from openwork.codegen.plan_cache import PlanCache
from openwork.compiler.invariant_checks import Chain, ChainLevel, kernel
from openwork.errors import InvariantError
from openwork.format import format as parse
from openwork.runtime import check as checks
from openwork.storage import Storage
from openwork.storage.buffers import as_array


def choose(monkeypatch, compiled: bool) -> None:
    monkeypatch.setattr(checks, "SMALL", -1 if compiled else 2**62)
    monkeypatch.setattr(checks, "_is_wanted", lambda chain: compiled)


@pytest.fixture(params=["exact", "compiled"])
def way(request, monkeypatch):
    """Both ways of checking: plain NumPy, and compiled kernels however small the tensor."""
    choose(monkeypatch, request.param == "compiled")
    return request.param


def writable(storage: Storage) -> Storage:
    return storage.mapped(lambda b: b.copy())


def broken(case: Break, index: str = "i4") -> Storage:
    storage = writable(LAYOUTS[case.layout](index))
    group = storage.pos if case.buffer.startswith("pos") else storage.crd
    buffer = group[int(case.buffer[3:])]
    (buffer.view(np.uint8) if buffer.dtype == bool else buffer)[case.at] = case.value
    return storage


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_valid_layouts_pass(layout, index, way):
    storage = LAYOUTS[layout](index)
    checks.check(storage)
    assert checks.holds(storage)


@pytest.mark.thin(6)
@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("case", BREAKS, ids=lambda c: f"{c.layout} {c.number} {c.buffer}[{c.at}]={c.value}")
def test_each_index_invariant(case, index, way):
    storage = broken(case, index)
    with pytest.raises(InvariantError) as caught:
        checks.check(storage)
    text = str(caught.value)
    assert text.endswith(f"(invariant {case.number})"), text
    assert case.says in text, text
    assert "help: " in text
    assert not checks.holds(storage)
    checks.check(storage, indices=False)


@pytest.mark.parametrize("case", BREAKS[::5], ids=lambda c: f"{c.layout} {c.number}")
def test_torch_buffers_too(case, way):
    torch = pytest.importorskip("torch")
    like = torch.empty(0)
    storage = broken(case).mapped(lambda b: as_array(b, like=like))
    with pytest.raises(InvariantError, match=case.number):
        checks.check(storage)
    checks.check(LAYOUTS[case.layout]("i8").mapped(lambda b: as_array(b, like=like)))


@given(st.data())
def test_compiled_and_exact_agree(data):
    name = data.draw(st.sampled_from([n for n, f in LAYOUTS.items() if any(b is not None for b in f("i4").crd)]))
    storage = writable(LAYOUTS[name](data.draw(st.sampled_from(["i4", "i8"]))))
    for _ in range(data.draw(st.integers(1, 3))):
        choices = [b for b in (*storage.pos, *storage.crd) if b is not None and b.dtype != bool]
        if not choices:
            return
        buffer = data.draw(st.sampled_from(choices))
        info = np.iinfo(buffer.dtype)
        value = data.draw(st.integers(-3, 10) | st.sampled_from([info.min, info.max, info.min + 1, info.max - 1]))
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = value
    found = []
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            choose(patch, compiled)
            found.append(checks.holds(storage))
    assert found[0] == found[1]


def test_large_and_located():
    n = 20_000
    crd = np.arange(2 * n, dtype=np.int32) % 2
    storage = make("csr", (n, 4), pos1=np.arange(0, 2 * n + 1, 2), crd1=crd)
    checks.check(storage)
    storage.crd[1][31_337] = 0
    with pytest.raises(InvariantError, match=r"crd\[1\]\[31337\] == 0 after crd\[1\]\[31336\] == 0"):
        checks.check(storage)


def test_small_tensors_take_a_kernel_from_disk_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    for is_there in (False, True):
        monkeypatch.setattr(cache, "_MEMORY", OrderedDict())
        monkeypatch.setattr(checks, "_kernels", PlanCache("of a test"))
        monkeypatch.setattr(checks, "_plans", PlanCache("of a test"))
        monkeypatch.setattr(checks, "_requests", checks.Counter())
        checks.check(LAYOUTS["csr"]("i4"))
        assert not checks._kernels
        checks.check(LAYOUTS["csr"]("i4"))
        assert len(checks._kernels) == is_there
        for _ in range(checks.PATIENCE):
            checks.check(LAYOUTS["csr"]("i4"))
        assert len(checks._kernels) == 1


def test_small_tensors_wait_for_a_kernel(monkeypatch):
    monkeypatch.setattr(cache, "at_hand", lambda *_: None)
    monkeypatch.setattr(checks, "_kernels", PlanCache("of a test"))
    monkeypatch.setattr(checks, "_plans", PlanCache("of a test"))
    monkeypatch.setattr(checks, "_requests", checks.Counter())
    for _ in range(checks.PATIENCE):
        checks.check(LAYOUTS["csr"]("i4"))
        assert not checks._kernels
    checks.check(LAYOUTS["csr"]("i4"))
    assert len(checks._kernels) == 1


@pytest.mark.parametrize("buffer", ["pos1", "crd1", "crd0"])
def test_one_wrong_element_among_many_is_found(buffer):
    rng = np.random.default_rng(0)
    n, nse = 3000, 20_000
    linear = np.sort(rng.choice(n * n, nse, replace=False))
    row, column = linear // n, linear % n
    pos = np.searchsorted(row, np.arange(n + 1))
    for at in rng.integers(1, n - 1, 40):
        storage = make("coo", (n, n), pos0=[0, nse], crd0=row, crd1=column)
        if buffer == "pos1":
            storage = make("csr", (n, n), pos1=pos, crd1=column)
        checks.check(storage)
        changed = storage.crd[0] if buffer == "crd0" else storage.pos[1] if buffer == "pos1" else storage.crd[1]
        changed[at] = changed[at - 1] - 1 if buffer != "crd1" else n
        assert not checks.holds(storage)


def test_kernels_are_named_by_their_structure():
    chain = Chain("compressed", (ChainLevel("i32", True, True),), "i64")
    assert chain.key != Chain("compressed", (ChainLevel("i32", False, True),), "i64").key
    assert kernel(chain) == kernel(chain)


def _replace(storage: Storage, **changes: object) -> Storage:
    fields = {k: getattr(storage, k) for k in ("shape", "format", "scalar", "fill_value", "pos", "crd", "values")}
    return Storage(**{**fields, **changes})


CSR = LAYOUTS["csr"]("i4")
LAYOUT_BREAKS = [
    ("1.2", {"crd": (None, CSR.crd[1].astype("f8"))}, "int32 or int64; got: float64"),
    ("1.1", {"pos": (None, CSR.pos[1].astype(object))}, "got: object"),
    ("1.3", {"crd": (None, CSR.crd[1].astype("i2"))}, "got: int16"),
    ("1.3", {"pos": (None, CSR.pos[1].astype("u4"))}, "got: uint32"),
    ("1.4", {"scalar": "f32"}, "expected: f32; got: f64"),
    ("1.5", {"values": CSR.values.astype("O")}, "supported dtype"),
    ("2.1", {"pos": (None, [0, 2, 2, 4, 5])}, "got: list"),
    ("2.2", {"crd": (None, [0, 3, 1, 7, 2])}, "got: list"),
    ("2.3", {"values": [1.0] * 5}, "got: list"),
    ("2.4", {"pos": (None, None)}, "pos={1: ...}"),
    ("2.4", {"crd": (CSR.crd[1], CSR.crd[1])}, "crd[0] of a dense level"),
    ("2.4", {"crd": (CSR.crd[1],)}, "one entry per level"),
    ("3.1", {"shape": (4,)}, "2 extents"),
    ("3.1", {"shape": (4, -8)}, "extent 1 of shape (4, -8)"),
    ("3.1", {"shape": (4, 2**63)}, "an integer from 0 to"),
    ("3.1", {"shape": (4.0, 8)}, "got: 4.0"),
    ("3.2", {"pos": (None, CSR.pos[1].reshape(1, 5))}, "one dimension"),
    ("3.3", {"crd": (None, CSR.crd[1].reshape(1, 5))}, "one dimension"),
    ("3.4", {"values": CSR.values.reshape(1, 5)}, "one dimension"),
    ("3.5", {"pos": (None, np.repeat(CSR.pos[1], 2)[::2])}, "pos[1] is contiguous"),
    ("3.6", {"crd": (None, np.repeat(CSR.crd[1], 2)[::2])}, "crd[1] is contiguous"),
    ("3.7", {"values": np.repeat(CSR.values, 2)[::2]}, "values is contiguous"),
    ("3.8", {"shape": (5, 8)}, "expected: 6; got: 5"),
    ("3.10", {"values": CSR.values[:-1]}, "expected: 5; got: 4"),
]


@pytest.mark.parametrize(("number", "changes", "says"), LAYOUT_BREAKS, ids=lambda x: str(x)[:30])
def test_each_layout_invariant(number, changes, says):
    with pytest.raises(InvariantError) as caught:
        checks.check(_replace(CSR, **changes))
    text = str(caught.value)
    assert text.endswith(f"(invariant {number})"), text
    assert says in text, text
    assert "help: " in text


def test_lengths_below():
    with pytest.raises(InvariantError, match=r"(?s)length of crd\[1\].*invariant 3.9"):
        checks.check(_replace(LAYOUTS["coo"]("i4"), crd=(np.zeros(4, "i4"), np.zeros(3, "i4"))))
    nm = LAYOUTS["nm"]("i4")
    with pytest.raises(InvariantError, match=r"(?s)length of crd\[2\].*invariant 3.9"):
        checks.check(_replace(nm, crd=(None, None, nm.crd[2][:-1])))
    batched = LAYOUTS["batched csr"]("i4")
    with pytest.raises(InvariantError, match=r"(?s)length of crd\[2\] for each of 2 batch slices.*invariant 3.11"):
        checks.check(_replace(batched, crd=(None, None, batched.crd[2][:-1])))


def test_widths_of_a_chain():
    coo = LAYOUTS["coo"]("i4")
    with pytest.raises(InvariantError, match=r"(?s)crd\[1\] has the type of crd\[0\].*invariant 1.2"):
        checks.check(_replace(coo, crd=(coo.crd[0], coo.crd[1].astype("i8"))))
    csr = _replace(CSR, pos=(None, CSR.pos[1].astype("i8")))
    checks.check(csr)


def test_bitmap_type():
    bitmap = LAYOUTS["bitmap"]("i4")
    with pytest.raises(InvariantError, match=r"(?s)crd\[1\] of a bitmap level is bool.*invariant 1.1"):
        checks.check(_replace(bitmap, crd=(None, bitmap.crd[1].astype("i4"))))


def test_one_library():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvariantError, match=r"(?s)crd\[1\] is of the values' library.*invariant 4.4"):
        checks.check(_replace(CSR, crd=(None, torch.from_numpy(CSR.crd[1].copy()))))
    meta = CSR.mapped(lambda b: torch.empty(len(b), dtype=as_array(b, like=torch.empty(0)).dtype, device="meta"))
    with pytest.raises(InvariantError, match=r"(?s)values are on a supported device.*invariant 4.1"):
        checks.check(meta)
    values = torch.empty(5, dtype=torch.float64, device="cpu")
    index = torch.empty(5, dtype=torch.int32, device="meta")
    with pytest.raises(InvariantError, match=r"(?s)pos\[1\] is on the values' device.*invariant 4.2"):
        checks.check(_replace(CSR, pos=(None, index), crd=(None, torch.from_numpy(CSR.crd[1].copy())), values=values))
    with pytest.raises(InvariantError, match=r"(?s)crd\[1\] is on the values' device.*invariant 4.3"):
        checks.check(_replace(CSR, pos=(None, torch.from_numpy(CSR.pos[1].copy())), crd=(None, index), values=values))


def test_torch_layouts_are_no_buffers():
    torch = pytest.importorskip("torch")
    sparse = torch.eye(5, dtype=torch.float64).to_sparse()
    with pytest.raises(InvariantError, match=r"(?s)values is a strided array.*invariant 2.3"):
        checks.check(_replace(CSR, values=sparse))


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", ["csr", "coo", "dcsr", "csf", "dia", "bsr(2, 2)", "ell(2)", "bitmap", "nm(2, 4)"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
def test_zero_extents(format, shape, way):
    made = parse(format)
    intervals = made.level_intervals(shape)
    pos, crd, parents = [], [], 1
    for level, (lo, hi) in zip(made.levels, intervals, strict=True):
        kind = level.format
        pos.append(np.zeros(parents + 1, "i4") if "pos" in kind.buffers else None)
        width = {"ell": 2, "nm": 2, "structured": 2}.get(kind.name, hi - lo) if "pos" not in kind.buffers else 0
        parents = parents if kind.name == "singleton" else parents * width
        dtype = bool if kind.name == "bitmap" else "i4"
        crd.append(np.full(parents, -1 if kind.name == "ell" else 0, dtype) if "crd" in kind.buffers else None)
    storage = Storage(shape, made, "f64", 0.0, tuple(pos), tuple(crd), np.zeros(parents))
    checks.check(storage)
    assert storage.nse == 0
