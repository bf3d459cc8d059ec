"""A stack of MoE layers in plain PyTorch: norm, router, dispatch, experts one by one, combine.

Parts are held in plain objects, so that the file can be type-checked where PyTorch is absent.
"""

from collections.abc import Callable
from typing import Any

from bench.workload.states import Sizes, State

Layer = Callable[[Any], Any]
"""Tokens (token_count, hidden) -> tokens of the same shape."""


def plain_layers(torch: Any, sizes: Sizes, state: State, device: str) -> tuple[list[Layer], list[Any]]:
    """The layers of a state, and their parameters."""
    dtype = getattr(torch, sizes.dtype)
    made = [_PlainLayer(torch, sizes, state, device, dtype) for _ in range(sizes.layer_count)]
    return [layer.forward for layer in made], [weight for layer in made for weight in layer.weights]


class _PlainLayer:
    def __init__(self, torch: Any, sizes: Sizes, state: State, device: str, dtype: Any) -> None:
        def linear(inner: int, outer: int) -> Any:
            return torch.nn.Linear(inner, outer, bias=False, device=device, dtype=dtype)

        self._torch, self._state, self._top_k = torch, state, sizes.top_k
        self._capacity = sizes.capacity(state)
        self._norm = torch.nn.RMSNorm(sizes.hidden, device=device, dtype=dtype)
        self._router = linear(sizes.hidden, state.expert_count)
        width = sizes.ffn(state)
        self._experts = [
            torch.nn.Sequential(linear(sizes.hidden, width), torch.nn.SiLU(), linear(width, sizes.hidden))
            for _ in range(state.expert_count)
        ]
        modules = (self._norm, self._router, *self._experts)
        self.weights = [weight for module in modules for weight in module.parameters()]

    def forward(self, tokens: Any) -> Any:
        torch = self._torch
        ranges = torch.profiler.record_function
        normed = self._norm(tokens)
        with ranges("route"):
            scores = self._router(normed).float().softmax(-1)
            gates, chosen = scores.topk(self._top_k, dim=-1)
            order = chosen.flatten().argsort(stable=True)
            expert = chosen.flatten().index_select(0, order)
            gate = gates.flatten().index_select(0, order).to(tokens.dtype).unsqueeze(1)
            numbers = torch.arange(self._state.expert_count, device=tokens.device)
            counts = (expert.unsqueeze(1) == numbers).sum(0)
            source = order // self._top_k
        sent = normed.index_select(0, source)
        run = self._on_their_tokens if self._state.host_counts else self._on_padded
        made = run(sent, expert, counts)
        with ranges("combine"):
            return tokens + torch.zeros_like(tokens).index_add(0, source, made * gate)

    def _on_their_tokens(self, sent: Any, expert: Any, counts: Any) -> Any:
        ranges = self._torch.profiler.record_function
        with ranges("dispatch"):
            parts = sent.split(counts.tolist())  # the read that is meant: the host waits for the GPU
        with ranges("experts"):
            return self._torch.cat([run(part) for run, part in zip(self._experts, parts, strict=True)])

    def _on_padded(self, sent: Any, expert: Any, counts: Any) -> Any:
        """Tokens beyond an expert's capacity go to one spare row, and come back as nothing."""
        torch, ranges = self._torch, self._torch.profiler.record_function
        spare = len(self._experts) * self._capacity
        with ranges("dispatch"):
            first = (counts.cumsum(0) - counts).index_select(0, expert)
            place = torch.arange(len(sent), device=sent.device) - first
            slot = torch.where(place < self._capacity, expert * self._capacity + place, spare)
            rows = sent.new_zeros(spare + 1, sent.shape[1]).index_copy(0, slot, sent)
        with ranges("experts"):
            parts = rows[:spare].split(self._capacity)
            made = [run(part) for run, part in zip(self._experts, parts, strict=True)]
            return torch.cat([*made, torch.zeros_like(rows[:1])]).index_select(0, slot)
