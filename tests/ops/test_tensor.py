from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import openwork as ow
from openwork.errors import DTypeError, ShapeError, UnsupportedError
from openwork.storage.buffers import address

FORMATS = ("csr", "csc", "dcsr", "dcsc", "coo", "csf", "bitmap", "bsr(2, 3)", "bsc(2, 3)", "bsr(5, 5)", "dia", "ell(8)",
           "dense", "dense_f", "nm(8, 8)",
           "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
           "(i, j) -> (i // 4 : dense, j : compressed, i % 4 // 2 : dense, i % 2 : dense)",
           "(i, j) -> (i : dense, j : loose_compressed)", "(i, j) -> (i + j : compressed, j : range)")  # fmt: skip


def example(seed: int = 0, shape: tuple[int, ...] = (6, 8)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.round(rng.random(shape) * (rng.random(shape) < 0.4), 3)


def test_attributes():
    t = ow.asarray(sp.csr_array(example()))
    assert (t.shape, t.ndim, t.size) == ((6, 8), 2, 48)
    assert t.dtype == np.float64
    assert t.device == "cpu"
    assert t.fill_value == 0.0
    assert t.nse == t.nnz == np.count_nonzero(example())
    assert t.density == t.nse / 48
    assert t.nbytes == 7 * 4 + t.nse * 12
    assert t.levels == t.format.levels
    assert len(t) == 6
    assert (t.batch_dim, t.sparse_dim, t.dense_dim) == (0, 2, 0)
    assert t.__array_namespace__() is ow
    with pytest.raises(ValueError, match="not supported"):
        t.__array_namespace__(api_version="1999.01")
    with pytest.raises(IndexError, match="level 2 of a tensor with 2 levels"):
        t.pos(2)
    with pytest.raises(TypeError, match=r"help: openwork\.asarray"):
        ow.Tensor(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)


def test_batch_and_dense_dimensions():
    t = ow.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [2]], np.ones((2, 1, 5)), (2, 1, 3, 5))
    assert (t.batch_dim, t.sparse_dim, t.dense_dim) == (1, 2, 1)
    assert t.crow_indices().shape == (2, 2)
    assert t.col_indices().shape == (2, 1)
    assert address(t.col_indices()) == address(t.crd(2))
    e = ow.sparse_csr_tensor([[0], [0]], np.zeros((2, 0), int), np.zeros((2, 0)), (2, 0, 3))
    assert e.crow_indices().shape == (2, 1)
    assert e.col_indices().shape == (2, 0)


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_same_elements(format):
    a = example()
    t = ow.asarray(a, format=format)
    np.testing.assert_array_equal(t.to_numpy(), a)
    assert t.nse >= np.count_nonzero(a)
    assert t.nse <= a.size
    assert repr(t).startswith("Tensor(shape=(6, 8), dtype=float64, format=")
    assert "\n" not in repr(t)
    assert str(t).splitlines()[1] == f"format = {t.format}"
    assert t._repr_html_().startswith("<div")


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("format", FORMATS)
def test_transposes_share_buffers(format):
    a = example()
    t = ow.asarray(a, format=format)
    for u in (t.T, t.mT, t.transpose(), t.transpose(1, 0), t.transpose((1, 0)), t.transpose(-1, -2)):
        assert u.shape == (8, 6)
        assert [address(b) for b in u._storage.buffers] == [address(b) for b in t._storage.buffers]
        np.testing.assert_array_equal(u.to_numpy(), a.T)
        assert u.nse == t.nse
    assert t.T.T.format == t.format


@given(st.permutations(range(4)), st.sampled_from(["coo", "csf", "dense", "bitmap"]))
def test_transposes_of_any_rank(axes, format):
    a = example(1, (2, 3, 4, 2))
    t = ow.asarray(a, format=format).transpose(axes)
    np.testing.assert_array_equal(t.to_numpy(), a.transpose(axes))


def test_transpose_laws():
    t = ow.asarray(example(), format="csr")
    assert t.T.format == ow.format("csc")
    b = ow.asarray(example(), format="bsr(2, 3)").T
    assert str(b.format.levels[2].expression) != str(ow.format("bsc(3, 2)").levels[2].expression)
    assert ow.asarray(example(), format="csr").T.to_scipy().format == "csc"
    with pytest.raises(ShapeError, match="not a permutation"):
        t.transpose(0, 0)
    with pytest.raises(ShapeError, match="mT"):
        ow.asarray([1.0]).mT  # noqa: B018


def test_accessors():
    t = ow.asarray(example(), format="coo")
    assert t.indices().shape == (2, t.nse)
    np.testing.assert_array_equal(t.indices(), np.nonzero(example()))
    with pytest.raises(UnsupportedError, match=r"crow_indices.*no such buffer"):
        t.crow_indices()
    for name, kind in (("crow_indices", "csr"), ("col_indices", "csr"), ("ccol_indices", "csc"), ("row_indices", "csc"),
                       ("indices", "coo")):  # fmt: skip
        getattr(ow.asarray(example(), format=kind), name)()
        with pytest.raises(UnsupportedError, match=rf'help: asformat."{kind}".'):
            getattr(ow.asarray(example(), format="bitmap"), name)()


def test_stacked_indices_are_a_view_where_they_can_be():
    given = np.array([[0, 1, 1], [2, 0, 1]])
    t = ow.sparse_coo_tensor(given, [1.0, 2.0, 3.0], is_coalesced=True)
    assert address(t.indices()) == address(given)
    np.testing.assert_array_equal(t.indices(), given)
    foreign = np.frombuffer(given.tobytes(), given.dtype).reshape(2, 3)  # memory that no array owns
    t = ow.sparse_coo_tensor(foreign, [1.0, 2.0, 3.0], is_coalesced=True)
    assert address(t.indices()) == address(foreign)
    np.testing.assert_array_equal(t.indices(), given)


def test_coalesce():
    t = ow.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    assert not t.is_coalesced()
    c = t.coalesce()
    assert c.is_coalesced()
    np.testing.assert_array_equal(c.values, [2.0, 4.0])
    assert c.coalesce() is c
    h = ow.sparse_coo_tensor([[1, 0, 1]], np.ones((3, 2)), (2, 2)).coalesce()
    assert h.dense_dim == 1
    np.testing.assert_array_equal(h.to_numpy(), [[1, 1], [2, 2]])


def test_asformat():
    t = ow.asarray(example(), format="csr")
    assert t.asformat("csr") is t
    assert address(t.asformat("csr", copy=True).values) != address(t.values)
    loose = t.asformat("(i, j) -> (i : dense, j : compressed(nonunique, unordered))")
    assert address(loose.values) == address(t.values)
    with pytest.raises(ValueError, match="moves data"):
        loose.asformat("csr", copy=False)
    np.testing.assert_array_equal(loose.asformat("csr").to_numpy(), example())
    with pytest.raises(ValueError, match="dimensions"):
        t.asformat("(i) -> (i : dense)")
    batched = ow.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [2]], np.ones((2, 1)), (2, 1, 3))
    assert batched.asformat("csc").format == ow.format("csc", batch=1)


def test_astype():
    t = ow.asarray(example(), format="csr")
    f = t.astype("float32")
    assert f.dtype == np.float32
    assert address(f.crd(1)) == address(t.crd(1))
    assert address(t.astype("float64", copy=False).values) == address(t.values)
    assert address(t.astype("float64").values) != address(t.values)
    assert type(t.astype("int64").fill_value) is int
    assert t.astype(np.complex64).fill_value == 0j
    with pytest.raises(DTypeError, match="imaginary"):
        t.astype(np.complex64).astype("float32")
    with pytest.raises(DTypeError, match="not supported"):
        t.astype("float128")


def test_devices():
    t = ow.asarray(example(), format="csr")
    assert t.to("cpu") is t
    with pytest.raises(UnsupportedError, match=r"is not available|torch is not installed"):
        t.to("nonsense")


def test_in_place():
    t = ow.asarray(example(), format="csr")
    values = t.values
    other = ow.asarray(example(5), format="coo")
    t.copy_(other)
    assert t.format == ow.format("csr")
    np.testing.assert_array_equal(t.to_numpy(), example(5))
    u = ow.asarray(example(), format="csr", fill_value=0)
    address_before = address(u.values)
    u.zero_()
    assert address(u.values) == address_before
    assert not u.to_numpy().any()
    assert values.any()
    with pytest.raises(ShapeError, match="copy_: expected shape"):
        t.copy_(np.ones(3))


def test_text():
    t = ow.assemble("csr", (4, 8), pos={1: [0, 2, 2, 2, 5]}, crd={1: [0, 1, 0, 5, 6]}, values=[1, 2, 3, 4, 5.5])
    assert str(t).splitlines()[1:] == [
        "format = (i, j) -> (i : dense, j : compressed)",
        "levels = ( 4 8 )",
        "pos[1] = ( 0 2 2 2 5 )",
        "crd[1] = ( 0 1 0 5 6 )",
        "values = ( 1 2 3 4 5.5 )",
        "space = cpu",
    ]
    blocked = ow.asarray(np.eye(5), format="bsr(2, 3)")
    assert str(blocked).splitlines()[2] == "levels = ( 3 2 2 3 )"
    assert str(ow.asarray(np.eye(3), format="dia")).splitlines()[2] == "levels = ( 5 3 )"
    assert repr(t) == 'Tensor(shape=(4, 8), dtype=float64, format="csr", nse=5, nbytes=120)'
    long = ow.asarray(np.arange(100))
    assert str(long).splitlines()[-2] == "values = ( 0 1 2 3 4 5 6 7 8 9 ... 90 91 92 93 94 95 96 97 98 99 )  [100]"
    assert str(ow.asarray([True, False])).splitlines()[-2] == "values = ( 1 0 )"
    assert str(ow.asarray([1 + 2j])).splitlines()[-2] == "values = ( 1+2j )"
    assert "fill_value=2.0" in repr(ow.asarray(np.eye(2), format="csr", fill_value=2.0))
    assert "data:image/png;base64," in t._repr_html_()
    assert len(ow.asarray(np.ones((300, 300)), format="csr")._repr_html_()) < 10_000


def test_a_tensor_is_not_callable():
    """Dask and pandas call what is callable where they expect arrays; MatX's `A(i, j)` is `A.item(i, j)`."""
    t = ow.asarray(np.arange(12.0).reshape(3, 4), format="csr")
    assert not callable(t)
    assert t.item(1, 2) == 6


def test_scalars():
    assert float(ow.asarray(2.5)) == 2.5
    assert int(ow.asarray([3])) == 3
    assert bool(ow.asarray([[True]], format="csr"))
    assert complex(ow.asarray(2j)) == 2j
    assert [10, 20, 30][ow.asarray(1)] == 20
    with pytest.raises(TypeError, match="only an integer tensor"):
        [1, 2][ow.asarray(1.0)]
    with pytest.raises(ShapeError, match="item: expected a tensor of one element"):
        ow.asarray([1, 2]).item()
    with pytest.raises(TypeError, match="rank 0"):
        len(ow.asarray(1))


def test_torch_functions_dispatch():
    torch = pytest.importorskip("torch")
    a = example()
    t = ow.asarray(torch.from_numpy(a), format="csr")
    x = torch.rand(8, 3, dtype=torch.float64)
    for out in (torch.matmul(t, x), torch.mm(t, x), t @ x):
        np.testing.assert_allclose(out.numpy(), a @ x.numpy())
    y = torch.rand(2, 6, dtype=torch.float64)
    np.testing.assert_allclose((y @ t).numpy(), y.numpy() @ a)
    np.testing.assert_allclose(float(torch.sum(t)), a.sum())
    with pytest.raises(UnsupportedError, match=r"torch\.cdist does not take"):
        torch.cdist(t, t)


def test_numpy_on_the_left():
    a = example()
    t = ow.asarray(a, format="csr")
    out = np.ones((2, 6)) @ t
    assert isinstance(out, np.ndarray)
    np.testing.assert_allclose(out, np.ones((2, 6)) @ a)
    np.testing.assert_allclose((2.0 * t).to_numpy(), 2 * a)
    np.testing.assert_allclose((np.float64(2) * t).to_numpy(), 2 * a)


def test_devices_and_dlpack_by_the_array_apis_names() -> None:
    t = ow.asarray(np.arange(3.0))
    assert t.to_device("cpu") is t
    assert np.from_dlpack(t).tolist() == [0, 1, 2]
    assert ow.from_dlpack(ow.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ow.UnsupportedError, match=r"to_device: stream 3\n  supported: None\n  help: use torch"):
        t.to_device("cpu", stream=3)
    with pytest.raises(ow.UnsupportedError, match=r"__dlpack__: a sparse tensor of shape \(2, 2\) would take 32 bytes"):
        ow.eye(2).__dlpack__(max_version=(1, 0), copy=True)


def test_rounding_integers_keeps_them() -> None:
    for dtype in ("int8", "uint64"):
        t = ow.round(ow.eye(3, dtype=dtype))
        assert t.dtype == dtype
        assert t.nse == 3
    assert set(ow.__array_namespace_info__().dtypes()) == {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    }  # fmt: skip
    assert ow.expand_dims(t, 1).shape == (3, 1, 3)


def test_explain_names_every_conversion_and_move() -> None:
    rng = np.random.default_rng(0)
    A = ow.random((40, 30), 0.1, format="csr", rng=rng)
    C = ow.random((30, 40), 0.1, format="csc", rng=rng)
    product = ow.explain(lambda: A @ C)
    assert [s.title for s in product.steps] == ["conversion of a tensor", "sparse matrix product, row by row"]
    again = ow.explain(lambda: A @ C)  # found again or not, what is done is said
    assert [s.facts[:-1] for s in again.steps[1:]] == [s.facts[:-1] for s in product.steps[1:]]
    assert again.steps[1].facts[-1][0] == "prepared"
    plan = ow.explain(lambda: C.asformat("csr"))
    assert plan.nbytes == sum(b.nbytes for b in plan.result._storage.buffers)
    taken = ow.explain(lambda: A[::2])
    assert [s.title for s in taken.steps] == ["elements moved: ranges of the outermost dimension"]
    assert "no kernel" in str(ow.explain(lambda: A.T))
