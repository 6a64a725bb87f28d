"""Tensors joined again by what their structures tell give what they gave the first time, and see what has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import InvariantError

RNG = np.random.default_rng(5)


def dense(rows: int, columns: int) -> np.ndarray[Any, Any]:
    return np.where(RNG.random((rows, columns)) < 0.4, RNG.random((rows, columns)), 0.0)


def libraries() -> list[Any]:
    """What makes arrays of each library."""
    try:
        import torch
    except ImportError:
        return [np.asarray]
    return [np.asarray, torch.from_numpy]


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "formats", [("csr", "csr"), ("coo", "coo"), ("csc", "csr"), ("coo", "dense"), ("ell(5)", "csr")]
)
def test_joined_again(formats: tuple[str, str]) -> None:
    """Of other values, other partners, dtypes and fill values in turn."""
    x, y, z = dense(4, 5), dense(4, 5), dense(4, 5)
    for library in libraries():
        a = ow.asarray(library(x), format=formats[0])
        partners = [ow.asarray(library(v), format=formats[1]) for v in (y, z, y.astype("f4"), y + 1)]
        for axis in (0, 1, -1):
            for _ in range(3):
                for b, v in zip(partners, (y, z, y.astype("f4"), y + 1), strict=True):
                    np.testing.assert_array_equal(ow.concat([a, b], axis=axis).to_numpy(), np.concatenate([x, v], axis))
                    np.testing.assert_array_equal(ow.concat([b, a], axis=axis).to_numpy(), np.concatenate([v, x], axis))
                    b3 = b * 3
                    np.testing.assert_array_equal(
                        ow.concat([a, b3, a], axis=axis).to_numpy(), np.concatenate([x, v * v.dtype.type(3), x], axis)
                    )
        with pytest.raises(ow.errors.ShapeError):
            ow.concat([a, ow.asarray(library(dense(3, 4)), format=formats[1])], axis=0)


def test_partners_of_a_subclass() -> None:
    """Whose operators are its own: values of a subclass of torch's tensors are not joined as plain ones were."""
    torch = pytest.importorskip("torch")

    class Marked(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    x, y = dense(4, 5), dense(4, 5)
    for format in ("csr", "coo"):
        a, b = (ow.asarray(torch.from_numpy(v), format=format) for v in (x, y))
        other = ow.Tensor._from_storage(b._storage.with_values((b.values * 2).as_subclass(Marked)))
        first = type(ow.concat([a, other]).values)
        for _ in range(3):
            ow.concat([a, b])
        result = ow.concat([a, other])
        assert type(result.values) is first
        np.testing.assert_array_equal(result.to_numpy(), np.concatenate([x, 2 * y]))


def test_partners_that_are_gone() -> None:
    """A structure may get the address of one that is gone."""
    x = dense(4, 5)
    a = ow.asarray(x, format="csr")
    for _ in range(30):
        y = dense(4, 5)
        b = ow.asarray(y, format="csr")
        for _ in range(3):
            np.testing.assert_array_equal(ow.concat([a, b]).to_numpy(), np.concatenate([x, y]))
        del b


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_results_that_are_written_to() -> None:
    torch = pytest.importorskip("torch")
    x, y = dense(4, 5), dense(4, 5)
    a, b = (ow.asarray(torch.from_numpy(v), format="coo") for v in (x, y))
    for _ in range(4):
        result = torch.cat([a, b], 1)
        assert torch.equal(result.to_dense(), torch.from_numpy(np.concatenate([x, y], 1)))
    result.crd(1).add_(100)
    with pytest.raises(InvariantError):
        result.to_dense()
    assert torch.equal(torch.cat([a, b], 1).to_dense(), torch.from_numpy(np.concatenate([x, y], 1)))
    p, q = (ow.Tensor._from_storage(t._storage.with_values(t.values.clone().requires_grad_())) for t in (a, b))
    (torch.cat([p, q], 1) * 2).sum().values.sum().backward()
    assert bool((p.values.grad == 2).all())
    assert bool((q.values.grad == 2).all())

    def joined(v: Any) -> Any:
        return torch.cat([ow.Tensor._from_storage(a._storage.with_values(v)), b], 0).values

    batch = torch.stack([a.values, 2 * a.values])
    assert torch.equal(torch.func.vmap(joined)(batch)[1], joined(2 * a.values))
    assert torch.equal(torch.func.jvp(joined, (a.values,), (a.values,))[1][: len(a.values)], a.values)
