"""Megatron-Core's GPT with MoE layers over several ranks: attention, router, all-to-all, experts, loss.

Its experts are spread over all ranks, everything else is on each, as in Megatron-LM with
`--expert-model-parallel-size N`. It is trained behind the library's own DistributedDataParallel; the
optimizer is PyTorch's AdamW, because that of the library runs on GPUs only. Call it within
`megatron.started`.
"""

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.workload.megatron import Place, configured, module
from bench.workload.model import Ranges, again
from bench.workload.states import SIZES, State


@dataclass(frozen=True, slots=True)
class _Text:
    """What a GPT has besides its layers. `sequence` tokens stand in one row of a batch."""

    sequence: int
    head_count: int
    vocabulary: int


_TEXTS: Final = {"cuda": _Text(1024, 16, 32768), "cpu": _Text(64, 4, 256)}
"""Kind of device -> shape."""

_PHASES: Final = {
    "route": "route",
    "preprocess": "preprocess",
    "dispatch": "dispatch",
    "routed_experts_compute": "experts",
    "combine": "combine",
}
"""Method of the library's MoE layer -> its range. Releases before 0.16 lack some, whose ranges are absent."""


def shape(device: str) -> dict[str, int]:
    """What the sizes of a step do not say of the GPT on a kind of device."""
    return asdict(_TEXTS[device])


class Gpt:
    """The GPT of a state, on this rank: a `Model`."""

    def __init__(self, torch: Any, state: State, device: str, place: Place, ranges: Ranges) -> None:
        sizes, text = SIZES[device], _TEXTS[device]
        config = configured(torch, sizes, state, head_count=text.head_count, rank_count=place.rank_count)
        specs = module("megatron.core.models.gpt.gpt_layer_specs")
        spec = specs.get_gpt_layer_local_spec(num_experts=state.expert_count, moe_grouped_gemm=False)
        layer = spec.submodules.mlp
        if isinstance(layer, functools.partial):  # from 0.18 on
            own = _in_ranges(layer.func, ranges, state.recompute)
            spec.submodules.mlp = functools.partial(own, **layer.keywords)
        else:
            layer.module = _in_ranges(layer.module, ranges, state.recompute)
        model = module("megatron.core.models.gpt.gpt_model").GPTModel(
            config, spec, text.vocabulary, text.sequence, position_embedding_type="rope"
        )
        parallel = module("megatron.core.distributed")
        plain = parallel.DistributedDataParallelConfig(overlap_grad_reduce=False)
        self._model = parallel.DistributedDataParallel(config, plain, model.to(device))
        self._finalize = parallel.finalize_model_grads
        self.weights = list(self._model.parameters())
        rows = sizes.token_count // text.sequence
        own = torch.Generator().manual_seed(place.rank)  # weights are alike on all ranks, texts are not
        draw = functools.partial(torch.randint, text.vocabulary, (rows, text.sequence), generator=own)
        self._tokens, self._labels = draw().to(device), draw().to(device)
        self._places = torch.arange(text.sequence, device=device).expand(rows, -1)
        above = torch.ones(text.sequence, text.sequence, dtype=torch.bool, device=device).triu(1)
        self._hidden = above[None, None]
        # Token numbers are a few kB; a state that copies its input copies what they are embedded into.
        self._copies = state.copies != "none"
        shape, dtype = (text.sequence, rows, sizes.hidden), getattr(torch, sizes.dtype)
        self.host = torch.randn(shape, dtype=dtype, pin_memory=device == "cuda")

    def loss(self, given: Any) -> Any:
        embedded = given if self._copies else None
        losses = self._model(
            self._tokens, self._places, self._hidden, decoder_input=embedded, labels=self._labels
        )
        return losses.mean()

    def clear(self) -> None:
        self._model.zero_grad_buffer()

    def reduce(self) -> None:
        self._finalize([self._model])
        for weight in self.weights:
            weight.grad = weight.main_grad


def _in_ranges(layer: Any, ranges: Ranges, recompute: bool) -> Any:
    """The library's MoE layer, each phase in a range of its name; backward may compute its forward again."""

    def ranged(phase: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(phase)
        def call(*given: Any, **named: Any) -> Any:
            with ranges(name):
                return phase(*given, **named)

        return call

    methods = {
        method: ranged(getattr(layer, method), name)
        for method, name in _PHASES.items()
        if hasattr(layer, method)
    }
    if recompute:
        methods["forward"] = lambda self, tokens, *rest, **named: again(
            functools.partial(layer.forward, self, **named), tokens, *rest
        )
    return type(f"{layer.__name__}InRanges", (layer,), methods)
