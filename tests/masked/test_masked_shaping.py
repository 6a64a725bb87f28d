"""Structural operations of masked tensors against numpy.ma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from masked_cases import FEW, SHAPES, agree, arrays, made, reference

import openwork as ow
from openwork import masked

KEYS: tuple[Any, ...] = (
    (0,), (slice(1, 4),), (slice(None, None, -2), slice(2, None)), (Ellipsis, 1), (None, 2), ([3, 0, 3],),
    ([0, 2], [1, 1]), (slice(None), [2, 1]),
)  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["dense", "csr", "coo", "bsr(2, 3)", "dia"])
def test_indexing(spec: str) -> None:
    data, bits = arrays((6, 9))
    m, a = made(data, bits, spec), reference(data, bits)
    for key in KEYS:
        got = m[key]
        agree(got, a[key])
        if got.ndim == 2 and None not in key:
            assert got.format == m.format
    agree(m[data > 0], a[data > 0])
    agree(m[m > 0], a[(data > 0) & bits])
    for at in ((0, 0), (-1, 3), (2, 8)):
        one = m[at]
        assert one.shape == ()
        assert one.nse == bits[at]
        assert one.filled(-9).to_numpy() == (data[at] if bits[at] else -9)
    with pytest.raises(IndexError):
        m[6, 0]


@pytest.mark.thin(4)
@pytest.mark.parametrize(("rank", "spec"), FEW, ids=lambda x: str(x))
def test_shapes(rank: int, spec: str) -> None:
    shape = SHAPES[rank][0]
    data, bits = arrays(shape)
    m, a = made(data, bits, spec), reference(data, bits)
    agree(m.reshape(-1), a.reshape(-1))
    agree(m.reshape(2, -1), a.reshape(2, -1))
    agree(m.T, a.T)
    assert np.shares_memory(m.T.values, m.values)
    if rank > 1:
        agree(m.mT, np.ma.swapaxes(a, -1, -2))
        assert np.shares_memory(m.mT.values, m.values)
    agree(m.T.T + m, a + a)
    both = [reference(np.flip(x.data, 0), np.flip(~x.mask, 0)) for x in (a,)]
    agree(m.flip(0), both[0])
    agree(m.roll(1, 0), reference(np.roll(data, 1, 0), np.roll(bits, 1, 0)))
    agree(m.unsqueeze(0), a[None])
    agree(m.unsqueeze(0).squeeze(0), a)
    agree(m.take([1, 0, 1], 0), a.take([1, 0, 1], 0))
    agree(masked.concat([m, m], 0), np.ma.concatenate([a, a]))
    agree(masked.stack([m, m], 0), np.ma.stack([a, a]))
    first, second = m.split([1, shape[0] - 1])
    agree(first, a[:1])
    agree(second, a[1:])
    wide = masked.pad(m, [(1, 2)] + [(0, 0)] * (rank - 1))
    edge = np.ma.masked_all((1, *shape[1:]))
    agree(wide, np.ma.concatenate([edge, a, edge, edge]))
    assert masked.pad(m, [(1, 0)] + [(0, 0)] * (rank - 1), 5.0).nse == bits.sum() + data[0].size


def test_concat_of_formats_takes_the_first() -> None:
    data, bits = arrays((4, 5))
    a = reference(data, bits)
    got = masked.concat([made(data, bits, "csr"), made(data, bits), made(data, bits, "csc")], 1)
    agree(got, np.ma.concatenate([a, a, a], 1))
    assert got.format == ow.format("csr")
    agree(masked.concat([made(data, bits), made(data, bits)], None), np.ma.concatenate([a.ravel(), a.ravel()]))
    with pytest.raises(ow.ShapeError, match="no tensors"):
        masked.concat([])


@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 3)"])
def test_assignment(spec: str) -> None:
    data, bits = arrays((6, 9))
    for key, value in ((0, 7.0), ((slice(1, 3), 4), 0.0), ((5, 5), np.ma.masked), (slice(2, 4), np.arange(9.0))):
        m, a = made(data, bits, spec), reference(data.copy(), bits.copy())
        a[key] = value
        m[key] = None if value is np.ma.masked else value
        agree(m, a)
        assert m.format == made(data, bits, spec).format
    other, also = arrays((2, 9), 4)
    m, a = made(data, bits, spec), reference(data.copy(), bits.copy())
    m[1:3] = made(other, also)
    a[1:3] = reference(other, also)
    agree(m, a)


def test_gather() -> None:
    data, bits = arrays((4, 5))
    places = np.array([[0, 4], [1, 1], [2, 0], [3, 3]])
    want = reference(np.take_along_axis(data, places, 1), np.take_along_axis(bits, places, 1))
    for spec in ("dense", "csr"):
        agree(made(data, bits, spec).gather(1, places), want)
        agree(made(data, bits, spec).tril(), reference(data, np.tril(bits)))


def test_scalars() -> None:
    m = made(np.array([[3.0]]), np.array([[True]]), "csr")
    one = m.reshape(())
    assert one.shape == ()
    assert one.reshape(1, 1).to_numpy(0).tolist() == [[3.0]]
    assert one[None].shape == (1,)
    assert one[...].item() == 3
    with pytest.raises(ow.ShapeError, match="do not fit shape"):
        made(*arrays((2, 2))).reshape(())


def test_shapes_and_orders_are_given_once_and_by_their_names() -> None:
    x = np.arange(6.0).reshape(2, 3)
    m = ow.masked_tensor(ow.asarray(x), ow.asarray(x > 1))
    assert m.reshape(3, 2).shape == m.reshape((3, 2)).shape == m.reshape(shape=(3, 2)).shape == (3, 2)
    assert m.permute(1, 0).shape == m.permute(dims=(1, 0)).shape == m.transpose(dim0=0, dim1=1).shape == (3, 2)
    t = ow.asarray(x)
    assert t.reshape(3, 2).shape == t.reshape(shape=(3, 2)).shape == (3, 2)
    for call in (m.reshape, m.permute, t.reshape):
        with pytest.raises(TypeError, match="missing argument"):
            call()
        with pytest.raises(TypeError, match="multiple values"):
            call(1, 0, **{"dims" if call == m.permute else "shape": (1, 0)})
        with pytest.raises(TypeError, match="unexpected keyword argument 'dim'"):
            call(3, 2, dim=1)
