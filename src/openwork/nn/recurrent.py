"""Recurrent layers whose weights are sparse: RNN, GRU and LSTM, one step after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from .. import ShapeError, Tensor
from .linear import SparseLinear, fill_parameter

__all__ = ["SparseRNN"]

State = tuple[torch.Tensor, ...]


class _Cell(torch.nn.Module):  # type: ignore[misc]
    """The weights of one layer in one direction: of the input, of the hidden state, and of its projection."""

    def __init__(self, input: SparseLinear, hidden: SparseLinear, projection: SparseLinear | None) -> None:
        super().__init__()
        self.input, self.hidden, self.projection = input, hidden, projection


class SparseRNN(torch.nn.Module):  # type: ignore[misc]
    """torch.nn.RNN, GRU or LSTM with sparse weights: what `prune` makes of these.

    Called as they are: sequences (batched, in either order, without a batch, packed) and initial states, in the same
    places. The input's products of all steps are one product; the hidden state's are one for each step.
    Made by `from_dense`.

    Examples
    --------
    >>> layer = ow.nn.prune(torch.nn.GRU(6, 4), 0.75)
    >>> output, state = layer(torch.ones(7, 2, 6))
    >>> output.shape
    torch.Size([7, 2, 4])
    """

    def __init__(self, cells: list[_Cell], layer: torch.nn.RNNBase) -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList(cells)
        self.mode, self.bias, self.dropout, self.proj_size = layer.mode, layer.bias, layer.dropout, layer.proj_size
        self.input_size, self.hidden_size, self.num_layers = layer.input_size, layer.hidden_size, layer.num_layers
        self.batch_first, self.bidirectional = layer.batch_first, layer.bidirectional

    @classmethod
    def from_dense(cls, layer: torch.nn.RNNBase, sparsify: Callable[[torch.Tensor], Tensor]) -> SparseRNN:
        """The layer of what `sparsify` makes of each weight of a torch.nn.RNN, GRU or LSTM."""

        def part(kind: str, suffix: str) -> SparseLinear:
            weight = getattr(layer, f"weight_{kind}_{suffix}")
            bias = getattr(layer, f"bias_{kind}_{suffix}", None)
            return SparseLinear.of(sparsify(weight.detach()), bias, weight.requires_grad)

        cells = [
            _Cell(part("ih", s), part("hh", s), part("hr", s) if layer.proj_size else None) for s in _suffixes(layer)
        ]
        return cls(cells, layer)

    def to_dense(self) -> torch.nn.RNNBase:
        """The torch.nn.RNN, GRU or LSTM of the same weights."""
        kind = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}.get(self.mode, torch.nn.RNN)
        options = {"proj_size": self.proj_size} if self.mode == "LSTM" else {}
        if kind is torch.nn.RNN:
            options = {"nonlinearity": self.mode.removeprefix("RNN_").lower()}
        dense = kind(
            self.input_size, self.hidden_size, self.num_layers, bias=self.bias, batch_first=self.batch_first,
            dropout=self.dropout, bidirectional=self.bidirectional, **options,
        )  # fmt: skip
        dense.to(self.cells[0].input.values)
        for suffix, cell in zip(_suffixes(self), self.cells, strict=True):
            for kind, part in (("ih", cell.input), ("hh", cell.hidden), ("hr", cell.projection)):
                if part is not None:
                    weight = part.weight.detach().to_dense()
                    fill_parameter(getattr(dense, f"weight_{kind}_{suffix}"), weight, part.values)
                    fill_parameter(getattr(dense, f"bias_{kind}_{suffix}", None), part.bias, part.bias)
        return dense

    def flatten_parameters(self) -> None:
        """Nothing; torch.nn.LSTM has it."""

    def forward(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        """The outputs of all steps and the last states, as of torch.nn.RNN, GRU and LSTM.

        Raises ShapeError for inputs and initial states that do not fit.
        """
        given = x.data if isinstance(x, PackedSequence) else x
        ranks = (2,) if isinstance(x, PackedSequence) else (2, 3)
        steps = 1 if self.batch_first and given.ndim == 3 else 0
        if given.ndim not in ranks or given.shape[-1] != self.input_size or not given.shape[steps]:
            wanted = f"steps, with or without a batch, and {self.input_size} features"
            raise ShapeError(f"SparseRNN: input {tuple(given.shape)}\n  expected: {wanted}")
        if isinstance(x, PackedSequence):
            initial = self._states(hx, x.data, int(x.batch_sizes[0]), x.sorted_indices)
            data, last = self._run(x.data, x.batch_sizes.tolist(), initial)
            last = tuple([s if x.unsorted_indices is None else s.index_select(1, x.unsorted_indices) for s in last])
            packed = PackedSequence(data, x.batch_sizes, x.sorted_indices, x.unsorted_indices)
            return packed, last if self.mode == "LSTM" else last[0]
        is_single = x.ndim == 2
        if is_single:
            x = x.unsqueeze(1)
            hx = _map(hx, lambda s: s.unsqueeze(1) if s.ndim == 2 else s[:0])
        elif self.batch_first:
            x = x.transpose(0, 1)
        steps, batch = x.shape[:2]
        out, last = self._run(
            x.reshape(steps * batch, self.input_size), [batch] * steps, self._states(hx, x, batch, None)
        )
        out = out.reshape(steps, batch, out.shape[1])
        if is_single:
            out, last = out.squeeze(1), tuple([s.squeeze(1) for s in last])
        elif self.batch_first:
            out = out.transpose(0, 1)
        return out, last if self.mode == "LSTM" else last[0]

    def _states(self, hx: Any, like: torch.Tensor, batch: int, order: torch.Tensor | None) -> State:
        """The initial states (layers and directions, batch, size): zeros where none are given."""
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: 1 + (self.mode == "LSTM")]
        shapes = [(len(self.cells), batch, size) for size in sizes]
        if hx is None:
            return tuple([like.new_zeros(shape) for shape in shapes])
        states = tuple(hx) if self.mode == "LSTM" and isinstance(hx, tuple | list) else (hx,)
        got = [tuple(s.shape) if isinstance(s, torch.Tensor) else type(s).__name__ for s in states]
        if got != shapes:
            raise ShapeError(f"SparseRNN: initial states {got}\n  expected: {shapes}, of {self.mode}")
        return states if order is None else tuple([s.index_select(1, order) for s in states])

    def _run(self, data: torch.Tensor, batch_sizes: list[int], initial: State) -> tuple[torch.Tensor, State]:
        """All layers over the steps of a packed sequence: (sum of batch_sizes, features)."""
        directions = 1 + self.bidirectional
        last: list[State] = []
        for k in range(0, len(self.cells), directions):
            if k and self.dropout:
                data = torch.nn.functional.dropout(data, self.dropout, self.training)
            outputs = []
            for direction in range(directions):
                states = tuple([s[k + direction] for s in initial])
                out, states = self._run_cell(self.cells[k + direction], data, batch_sizes, states, direction == 1)
                outputs.append(out)
                last.append(states)
            data = torch.cat(outputs, 1)
        return data, tuple([torch.stack(states) for states in zip(*last, strict=True)])

    def _run_cell(
        self, cell: _Cell, data: torch.Tensor, batch_sizes: list[int], states: State, is_reversed: bool
    ) -> tuple[torch.Tensor, State]:
        """One layer in one direction; sequences that have ended, or not begun, keep their states."""
        step, inputs = _STEPS[self.mode], cell.input(data).split(batch_sizes)
        order = range(len(batch_sizes))
        outputs: dict[int, torch.Tensor] = {}
        for t in reversed(order) if is_reversed else order:
            n = batch_sizes[t]
            running = states if n == len(states[0]) else tuple([s[:n] for s in states])
            new = step(cell, inputs[t], running)
            outputs[t] = new[0]
            pairs = zip(new, states, strict=True)
            states = tuple([s if n == len(old) else torch.cat([s, old[n:]]) for s, old in pairs])
        return torch.cat([outputs[t] for t in order]), states

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        return f"{self.mode}, {self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


def _lstm(cell: _Cell, x: torch.Tensor, states: State) -> State:
    input, forget, new, output = (x + cell.hidden(states[0])).chunk(4, 1)
    memory = torch.sigmoid(forget) * states[1] + torch.sigmoid(input) * torch.tanh(new)
    hidden = torch.sigmoid(output) * torch.tanh(memory)
    return hidden if cell.projection is None else cell.projection(hidden), memory


def _gru(cell: _Cell, x: torch.Tensor, states: State) -> State:
    reset_x, update_x, new_x = x.chunk(3, 1)
    reset, update, new = cell.hidden(states[0]).chunk(3, 1)
    candidate = torch.tanh(new_x + torch.sigmoid(reset_x + reset) * new)
    kept = torch.sigmoid(update_x + update)
    return (candidate + kept * (states[0] - candidate),)


def _tanh(cell: _Cell, x: torch.Tensor, states: State) -> State:
    return (torch.tanh(x + cell.hidden(states[0])),)


def _relu(cell: _Cell, x: torch.Tensor, states: State) -> State:
    return (torch.relu(x + cell.hidden(states[0])),)


_STEPS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _tanh, "RNN_RELU": _relu}


def _suffixes(layer: Any) -> list[str]:
    """The ends of the names of torch's weights, one for each layer and direction."""
    directions = ("", "_reverse")[: 1 + layer.bidirectional]
    return [f"l{k}{direction}" for k in range(layer.num_layers) for direction in directions]


def _map(hx: Any, visit: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if hx is None:
        return None
    return tuple([visit(s) for s in hx]) if isinstance(hx, tuple) else visit(hx)
