"""Values of a tensor that is stored in another order than the one that they are given to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import openwork as ow

RAISES = pytest.raises(ow.ShapeError, match=r"(?s)stored in another order.*expected: values in the order.*help: sort")


def graph(library: str, format: str) -> Any:
    """A graph as scikit-learn makes it: neighbours by distance, not by number."""
    pos, crd, values = np.array([0, 2, 3]), np.array([2, 0, 1]), np.array([1.0, 2.0, 3.0])
    K = ow.asarray(scipy.sparse.csr_array((values, crd, pos), shape=(2, 3)), like=library)
    return K if format == "csr" else ow.sparse_coo_tensor([[0, 0, 1], [2, 0, 1]], K.values, (2, 3))


@pytest.mark.thin(2)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "coo"])
@pytest.mark.parametrize("function", [
    ow.abs, lambda K: K + K, lambda K: ow.maximum(K, K * 2), lambda K: K.asformat("csr"), lambda K: ow.compute(ow.lazy(K) + K),
])  # fmt: skip
def test_values_of_a_sorted_result_do_not_fit_an_unordered_tensor(function: Any, format: str, library: str) -> None:
    K = graph(library, format)
    assert not K.format.is_ordered
    with RAISES:
        ow.with_values(K, function(K).values)
    result = function(K)
    with RAISES:
        K.with_values(result.values)
    with RAISES:
        ow.with_values(result, K.values)
    once = K.asformat(result.format)
    np.testing.assert_array_equal(once.with_values(result.values).to_numpy(), result.to_numpy())


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "coo"])
def test_values_in_the_order_of_the_tensor_are_taken(format: str, library: str) -> None:
    K = graph(library, format)
    for values in ((-K).values, (K * 2).values, K.values * 2, np.array([5.0, 6.0, 7.0]), 1.0):
        assert K.with_values(values).nse == 3
    np.testing.assert_array_equal(K.with_values((K * 2).values).to_numpy(), K.to_numpy() * 2)
    np.testing.assert_array_equal(K.T.with_values((K * 2).values).to_numpy(), K.to_numpy().T * 2)
    again = graph(library, format)
    np.testing.assert_array_equal(K.with_values(again.values).to_numpy(), K.to_numpy())
    in_order = ow.asarray(np.array([[0.0, 4.0]]), format="csr")
    loose = in_order.asformat("csr(nonunique, unordered)")
    assert loose.with_values(in_order.values).nse == 1
    assert loose.with_values((in_order + in_order).values).to_numpy().tolist() == [[0, 8]]


def test_values_of_ordered_tensors_are_anybodys() -> None:
    a, b = ow.asarray(np.eye(3), format="csr"), ow.asarray(np.eye(3)[::-1].copy(), format="coo")
    assert a.with_values(b.values).nse == 3
