"""Transforms of functions that take and give Tensors, by the names and arguments of torch.func.

    grad(f)(A)     ->  Tensor of the structure of A, over torch.func.grad(values -> f(A over values))(A.values)
    jacrev(f)(A)   ->  Tensor of shape (*f(A).shape, *A.shape), of the derivatives by and of what is stored

torch.func's own take Tensors too, as nodes of its pytrees with their values as the leaf (`masked.torch_nodes`), where
what they give has the fill value 0 and one number for each stored element. These do the rest: results that are
Tensors of one element, tangents in other formats, Jacobians, batches, any fill value, Tensors over NumPy buffers.
Structures are constant. A batch of Tensors has many of them, so that `vmap` over one is a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ..errors import UnsupportedError
from ..interop.layouts import sparse_coo_tensor
from ..masked.shaping import stack as stack_masked
from ..masked.tensor import MaskedTensor, wrap
from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..ops.manipulation.joining import stack
from ..runtime.documentation import document_all
from ..storage.recorded import outside
from ..storage.specified import coordinates
from ..storage.storage import Storage, structure_of
from ..tensor.tensor import Tensor
from .gradients.leaves import on_structure
from .gradients.nary import over_torch

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

Function = Callable[..., Any]


# -- Tensors as nodes of a pytree --------------------------------------------------------------------------------------


class _Origin:
    """What a Tensor is besides its values, and the call of a transform that took it apart."""

    __slots__ = ("call", "is_input", "masked", "storage")

    def __init__(self, call: object, is_input: bool, storage: Storage, masked: bool | None) -> None:
        self.call, self.is_input, self.storage, self.masked = call, is_input, storage, masked

    def tensor(self, values: Any, is_gradient: bool = False) -> Any:
        """The Tensor, or masked tensor, over values; the fill value of a gradient is 0."""
        s = self.storage.with_values(values, 0) if is_gradient else self.storage.with_values(values)
        t = Tensor._from_storage(s)
        return t if self.masked is None else wrap(t, self.masked)


class _Node:
    """A Tensor taken apart: its values, or what a transform makes of them."""

    __slots__ = ("origin", "values")

    def __init__(self, values: Any, origin: _Origin) -> None:
        self.values, self.origin = values, origin


class _Place:
    """The place of a Tensor in a tree of results, without a leaf."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def _unflatten(children: Iterable[Any], origin: _Origin) -> _Node:
    (values,) = children
    return _Node(values, origin)


pytree.register_pytree_node(_Node, lambda node: ([node.values], node.origin), _unflatten)
pytree.register_pytree_node(_Place, lambda place: ([], place.number), lambda _, number: _Place(number))


def _is_ours(x: Any) -> bool:
    return isinstance(x, Tensor | MaskedTensor)


def _apart(tree: Any, call: object, is_input: bool = False) -> Any:
    """A tree with every Tensor and masked tensor taken apart."""

    def visit(x: Any) -> Any:
        if not _is_ours(x):
            return x
        masked = x._scalar if isinstance(x, MaskedTensor) else None
        t = over_torch(x._tensor if isinstance(x, MaskedTensor) else x)
        if getattr(t, "_proxy", None) is not None:
            raise UnsupportedError(
                'openwork.torch.func: a Tensor of grad="dense"\n  supported: gradients of stored elements'
                "\n  help: t.detach(), or transform a function of a dense tensor"
            )
        s = t._storage
        return _Node(s.values, _Origin(call, is_input, s, masked))

    return pytree.tree_map(visit, tree, is_leaf=_is_ours)


def _visit(tree: Any, call: object, function: Callable[[_Node], Any]) -> Any:
    """A tree with `function` of every Tensor that this call took apart."""

    def is_own(x: Any) -> bool:
        return isinstance(x, _Node) and x.origin.call is call

    return pytree.tree_map(lambda x: function(x) if is_own(x) else x, tree, is_leaf=is_own)


def _whole(tree: Any, call: object) -> Any:
    return _visit(tree, call, lambda node: node.origin.tensor(node.values))


def _gradients(tree: Any, call: object) -> Any:
    return _visit(tree, call, lambda node: node.origin.tensor(node.values, True))


def _number(x: Any) -> Any:
    """A result that has to be a torch tensor, of one element."""
    x = x.filled(0) if isinstance(x, MaskedTensor) else x
    return x.to_dense() if isinstance(x, Tensor) else x


def _of_parts(function: Function, call: object, result: Function, has_aux: bool = False) -> Function:
    """A function of Tensors -> one of Tensors taken apart; `result` is done to what it gives, not to what is beside."""

    def inner(*args: Any, **kwargs: Any) -> Any:
        given = function(*_whole(args, call), **_whole(kwargs, call))
        if has_aux and isinstance(given, tuple) and len(given) == 2:
            return result(given[0]), _apart(given[1], call)
        return result(given)

    return update_wrapper(inner, function, updated=())


# -- gradients ---------------------------------------------------------------------------------------------------------


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function as a function: `torch.func.grad`; by a Tensor it is a Tensor of its structure.

    func : Gives a number, a torch tensor of one element or a Tensor of one.

    Returns a function of the arguments of `func` that gives its gradient, with the second result of `func` where
    `has_aux`.

    Cost: that of the function and its gradient.
    See also: grad_and_value, vjp, jacrev.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.grad(lambda s: (s * s).sum())(S).values
    tensor([2., 2.])
    """

    def gradient(*args: Any, **kwargs: Any) -> Any:
        call = object()
        own = torch.func.grad(_of_parts(func, call, _number, has_aux), argnums, has_aux)
        found = own(*_apart(args, call, True), **_apart(kwargs, call, True))
        return (_gradients(found[0], call), _whole(found[1], call)) if has_aux else _gradients(found, call)

    return gradient


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of another and its value: `torch.func.grad_and_value`, see `grad`.

    Returns a function of the arguments of `func` that gives its gradient and its value.

    Cost: that of the function and its gradient.
    See also: grad.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> gradient, value = ow.torch.func.grad_and_value(lambda s: (s * s).sum())(S)
    >>> value
    tensor(2.)
    """

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        call = object()
        own = torch.func.grad_and_value(_of_parts(func, call, _number, has_aux), argnums, has_aux)
        found, value = own(*_apart(args, call, True), **_apart(kwargs, call, True))
        return _gradients(found, call), _whole(value, call)

    return gradient_and_value


def _matched(nodes: Any, given: Any, call: object, operation: str) -> Any:
    """What is given for a tree of Tensors taken apart, by coordinates, as such a tree."""
    flat, spec = pytree.tree_flatten(nodes, is_leaf=lambda x: isinstance(x, _Node) and x.origin.call is call)
    try:
        each = spec.flatten_up_to(given)
    except ValueError:  # another tree: torch says how they differ
        return _apart(given, call)

    def visit(node: Any, x: Any) -> Any:
        if not isinstance(node, _Node) or node.origin.call is not call:
            return _number(x)
        t = node.origin.tensor(node.values)
        x = x.specified if isinstance(x, MaskedTensor) else x
        return _Node(on_structure(getattr(t, "specified", t), x, operation), node.origin)

    return pytree.tree_unflatten([visit(node, x) for node, x in zip(flat, each, strict=True)], spec)


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The result of a function and its pullback: `torch.func.vjp`; cotangents of Tensors are in any format.

    primals : its arguments

    Returns the result, a function of its cotangent that gives a tuple of those of the arguments, and the second result
    of `func` where `has_aux`.

    Cost: that of the function; a pullback costs a gradient.
    See also: jvp, jacrev.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> y, pull = ow.torch.func.vjp(lambda s: 3 * s, S)
    >>> pull(torch.ones(2, 2))[0].values
    tensor([3., 3.])
    """
    call = object()
    function = _of_parts(func, call, partial(_apart, call=call), has_aux)
    output, pull, *aux = torch.func.vjp(function, *_apart(primals, call, True), has_aux=has_aux)

    def pull_back(*cotangents: Any, **options: Any) -> Any:
        if len(cotangents) == 1:
            cotangents = (_matched(output, cotangents[0], call, "vjp"),)
        return _gradients(pull(*cotangents, **options), call)

    return _whole(output, call), pull_back, *_whole(aux, call)


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The result of a function and its derivative along tangents: `torch.func.jvp`; of Tensors, in any format.

    primals, tangents : tuples of its arguments and of as many tangents, each of its argument's shape
    strict : whether a result that depends on no argument is refused

    Returns the result, its tangent, and the second result of `func` where `has_aux`.

    Cost: that of the function and its derivative.
    See also: vjp, jacfwd.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.jvp(lambda s: s @ torch.ones(2), (S,), (ow.eye(2, format="coo", like=torch),))[1]
    tensor([1., 1.])
    """
    call = object()
    function = _of_parts(func, call, partial(_apart, call=call), has_aux)
    parts = _apart(primals, call, True)
    own = _matched(parts, tangents, call, "jvp")
    output, slope, *aux = torch.func.jvp(function, parts, own, strict=strict, has_aux=has_aux)
    return _whole(output, call), _gradients(slope, call), *_whole(aux, call)


# -- Jacobians ---------------------------------------------------------------------------------------------------------


def jacrev(
    func: Function, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """The Jacobian of a function as a function, by VJPs: `torch.func.jacrev`; by or of a Tensor it is one, in COO.

    Returns a function of the arguments of `func` that gives its Jacobian, of shape (*result.shape, *argument.shape).

    Cost: a gradient for each element of the result.
    See also: jacfwd, hessian, torch.jacobian.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.jacrev(lambda s: s @ torch.ones(2))(S).shape
    (2, 2, 2)
    """
    return _jacobian(partial(torch.func.jacrev, chunk_size=chunk_size), func, argnums, has_aux)


def jacfwd(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """The Jacobian of a function as a function, by JVPs: `torch.func.jacfwd`; by or of a Tensor it is one, in COO.

    Returns a function of the arguments of `func` that gives its Jacobian, of shape (*result.shape, *argument.shape).

    Cost: a derivative for each stored element of the argument.
    See also: jacrev, hessian, torch.jacobian.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.jacfwd(lambda s: s @ torch.ones(2))(S).shape
    (2, 2, 2)
    """
    return _jacobian(partial(torch.func.jacfwd, randomness=randomness), func, argnums, has_aux)


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The Hessian of a function as a function: `torch.func.hessian`; by a Tensor it is a Tensor, in COO.

    Returns a function of the arguments of `func` that gives its Hessian.

    Cost: a gradient and its derivative for each stored element.
    See also: jacrev, torch.hessian.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.hessian(lambda s: (s * s).sum())(S).shape
    (2, 2, 2, 2)
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _jacobian(transform: Function, func: Function, argnums: Any, has_aux: bool) -> Function:
    """`jacrev` or `jacfwd`: torch's `transform` of the function of Tensors taken apart."""

    def jacobian(*args: Any) -> Any:
        call = object()
        function = _of_parts(func, call, partial(_apart, call=call), has_aux)
        found = transform(function, argnums, has_aux=has_aux)(*_apart(args, call, True))
        if has_aux:
            return _jacobians(found[0], call), _whole(found[1], call)
        return _jacobians(found, call)

    return update_wrapper(jacobian, func, updated=())


def _jacobians(tree: Any, call: object, output: _Origin | None = None) -> Any:
    """The trees of the results, of whose leaves each is a tree of the arguments, with Tensors put together."""

    def is_own(x: Any) -> bool:
        return isinstance(x, _Node) and x.origin.call is call

    def visit(x: Any) -> Any:
        if not is_own(x):
            return x if output is None else _derivatives(x, output, None)
        if x.origin.is_input:
            return _derivatives(x.values, output, x.origin)
        return _jacobians(x.values, call, x.origin)

    return pytree.tree_map(visit, tree, is_leaf=is_own)


def _derivatives(values: torch.Tensor, output: _Origin | None, input: _Origin | None) -> Any:
    """Derivatives by the values of one Tensor, of those of another, or with torch's tensors -> a Tensor."""
    if input is not None and output is None and values.ndim == 1:
        return input.tensor(values, True)
    if output is not None and input is None and values.ndim == 1:
        return output.tensor(values, True)
    shape: tuple[int, ...] = ()
    parts = []
    if output is None:
        shape = tuple(values.shape[:-1])
        parts.append(np.indices(shape).reshape(len(shape), -1))
        values = values.reshape(math.prod(shape), -1)
    for k, origin in enumerate((output, input)):
        if origin is not None:
            shape += tuple(origin.storage.shape)
            crd, at = _coordinates(origin.storage)
            parts.append(crd)
            values = values.index_select(k, at)
    if input is None:
        shape += tuple(values.shape[1:])
    else:
        values = values.reshape(-1)
    with outside():
        counts = [x.shape[1] for x in parts]
        first = [np.repeat(parts[0], counts[1], axis=1), np.tile(parts[1], (1, counts[0]))] if input else parts
        indices = torch.from_numpy(np.concatenate(first))
    unique = all(origin is None or origin.storage.format.is_unique for origin in (output, input))
    return sparse_coo_tensor(indices, values, shape, is_coalesced=unique, check_invariants=False)


def _coordinates(s: Storage) -> tuple[Any, torch.Tensor]:
    """The coordinates of the elements in row-major order, and the places of their values."""
    with outside():
        crd, at = coordinates(structure_of(s))
        order = np.lexsort(crd[::-1]) if len(crd) else np.arange(len(at))
        return crd[:, order], torch.from_numpy(at[order])


# -- batches -----------------------------------------------------------------------------------------------------------


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """A function of items as a function of batches: `torch.func.vmap`; Tensors are constant, batches or results.

    in_dims, out_dims : the dimension of each argument and result that is the batch, None of what is the same for all

    Dense batches beside a constant Tensor are one more index of a product. A batch of Tensors is a loop over them, and
    results that are Tensors are stacked.

    Returns a function of batches.

    Cost: one call, or one for each item of a batch of Tensors.
    See also: stack.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2), format="csr")
    >>> ow.torch.func.vmap(lambda s: s @ torch.ones(2))(ow.stack([S, 2 * S]))
    tensor([[1., 1.],
            [2., 2.]])
    """
    options = {"chunk_size": chunk_size}
    all_first = all(d == 0 for d in pytree.tree_leaves(out_dims))

    def batched(*args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten(args, is_leaf=_is_ours)
        dims = pytree._broadcast_to_and_flatten(in_dims, spec)
        if dims is not None and any(d is not None for x, d in zip(flat, dims, strict=True) if _is_ours(x)):
            return _loop(func, flat, spec, dims, out_dims, randomness, kwargs)
        call = object()
        parts, named = _apart(args, call, True), _apart(kwargs, call, True)
        if all_first:
            function = _of_parts(func, call, partial(_apart, call=call))
            found = torch.func.vmap(function, in_dims, out_dims, randomness, **options)(*parts, **named)
            return _visit(found, call, lambda node: _stacked(node, 0))
        function = _of_parts(func, call, partial(_set_apart, call=call))
        every = torch.func.vmap(function, in_dims, (out_dims, 0), randomness, **options)
        found, nodes = every(*parts, **named)
        return _put_back(found, nodes, out_dims)

    return update_wrapper(batched, func, updated=())


def _stacked(node: _Node, dim: int) -> Any:
    """Values of a batch, the batch in front -> the Tensors over each, stacked."""
    return _stack([node.origin.tensor(values) for values in node.values.unbind()], dim)


def _stack(results: Sequence[Any], dim: int) -> Any:
    if isinstance(results[0], torch.Tensor):
        return torch.stack(list(results), dim)
    return (stack_masked if isinstance(results[0], MaskedTensor) else stack)(results, axis=dim)


def _set_apart(tree: Any, call: object) -> tuple[Any, list[_Node]]:
    """A tree with places where Tensors were, and these, taken apart."""
    nodes: list[_Node] = []

    def visit(x: Any) -> Any:
        if not _is_ours(x):
            return x
        nodes.append(_apart(x, call))
        return _Place(len(nodes) - 1)

    return pytree.tree_map(visit, tree, is_leaf=_is_ours), nodes


def _put_back(tree: Any, nodes: list[_Node], out_dims: Any) -> Any:
    """The reverse of `_set_apart`, of batches."""
    flat, spec = pytree.tree_flatten(tree, is_leaf=lambda x: isinstance(x, _Place))
    dims = pytree._broadcast_to_and_flatten(out_dims, spec)
    pairs = zip(flat, dims, strict=True)
    leaves = [_stacked(nodes[x.number], d) if isinstance(x, _Place) else x for x, d in pairs]
    return pytree.tree_unflatten(leaves, spec)


def _loop(
    func: Function, flat: list[Any], spec: Any, dims: list[Any], out_dims: Any, randomness: str, kwargs: dict[str, Any]
) -> Any:
    """The function of each item of a batch, and its results stacked. Raises ValueError as torch's vmap does."""
    for x, d in zip(flat, dims, strict=True):
        if d is not None and not (_is_ours(x) or isinstance(x, torch.Tensor)):
            raise ValueError(f"vmap: in_dim={d} for an argument of type {type(x).__name__}\n  help: None in its place")
        if d is not None and not -x.ndim <= d < x.ndim:
            raise ValueError(f"vmap: in_dim={d} for a tensor of shape {tuple(x.shape)}")
    sizes = {x.shape[d] for x, d in zip(flat, dims, strict=True) if d is not None}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"vmap: batches of sizes {sorted(sizes)}\n  expected: one size, of at least 1")
    state = torch.get_rng_state() if randomness == "same" else None
    rows = []
    for k in range(sizes.pop()):
        if state is not None:
            torch.set_rng_state(state)
        items = [x if d is None else _item(x, d % x.ndim, k) for x, d in zip(flat, dims, strict=True)]
        rows.append(pytree.tree_flatten(func(*pytree.tree_unflatten(items, spec), **kwargs), is_leaf=_is_ours))
    result_spec = rows[0][1]
    to = pytree._broadcast_to_and_flatten(out_dims, result_spec)
    columns = list(zip(*[leaves for leaves, _ in rows], strict=True))
    if to is None or not all(_is_ours(c[0]) or isinstance(c[0], torch.Tensor) for c in columns):
        raise ValueError(f"vmap: out_dims={out_dims} for results of {result_spec}\n  expected: tensors, and a dim each")
    return pytree.tree_unflatten([_stack(c, d) for c, d in zip(columns, to, strict=True)], result_spec)


def _item(x: Any, dim: int, k: int) -> Any:
    return x[(*(slice(None),) * dim, k)]


document_all(globals(), __all__)
