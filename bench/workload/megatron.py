"""The same states with Megatron-Core's own MoE layer.

Padded experts are its drop-and-pad mode; counts read by the host are its dropless all-to-all dispatcher. With
one rank the all-to-all itself is skipped by the library, so no communication is recorded; `gpt.py` runs
several. Tried with megatron-core 0.14.0 to 0.19.2.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

from bench.workload.layers import Layer
from bench.workload.states import Sizes, State
from diagnoser.megatron import INSTALL
from diagnoser.megatron.layer import moe_layer
from traces.errors import InputError

_WITHOUT_TE: Final = (
    "te_general_gemm",
    "fused_permute",
    "fused_permute_with_probs",
    "fused_sort_chunks_by_index",
    "fused_sort_chunks_by_index_with_probs",
    "fused_unpermute",
    "fused_topk_with_score_function",
    "fused_compute_score_for_moe_aux_loss",
    "fused_moe_aux_loss",
)
"""Names that megatron-core 0.13 to 0.16.1 uses without defining them where TransformerEngine is absent."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rank of a run on this machine. `meeting`: a file of their own, where the ranks find each other."""

    rank: int = 0
    rank_count: int = 1
    meeting: Path | None = None


@contextmanager
def started(torch: Any, device: str, place: Place) -> Iterator[None]:
    """Megatron-Core set up for this rank, its experts spread over all ranks, and taken down again.

    On a CPU its unconditional uses of CUDA streams and devices are stood in for; on a GPU nothing is but the
    undefined names.
    """
    module("megatron.core")
    state = module("megatron.core.parallel_state")
    backend, groups = "nccl" if device == "cuda" else "gloo", torch.distributed
    meeting, count = place.meeting, place.rank_count
    store = groups.HashStore() if meeting is None else groups.FileStore(str(meeting), count)
    groups.init_process_group(backend, store=store, rank=place.rank, world_size=count)
    with ExitStack() as undo:
        undo.callback(groups.destroy_process_group)
        state.initialize_model_parallel(expert_model_parallel_size=count)
        undo.callback(state.destroy_model_parallel)
        helpers = module("megatron.core.transformer.moe.moe_utils")
        for name in _WITHOUT_TE:
            if not hasattr(helpers, name):
                setattr(helpers, name, None)
        # the library's own switch for no random state beside PyTorch's: nothing is dropped out
        module("megatron.core.tensor_parallel.random").initialize_rng_tracker(inference_rng_tracker=True)
        if device != "cuda":
            for patch in _host_in_place_of_cuda(torch):
                undo.enter_context(patch)
        yield


def configured(torch: Any, sizes: Sizes, state: State, *, head_count: int = 1, rank_count: int = 1) -> Any:
    """The library's configuration of a state."""
    return module("megatron.core.transformer.transformer_config").TransformerConfig(
        num_layers=sizes.layer_count,
        hidden_size=sizes.hidden,
        num_attention_heads=head_count,
        expert_model_parallel_size=rank_count,
        num_moe_experts=state.expert_count,
        moe_router_topk=sizes.top_k,
        moe_ffn_hidden_size=sizes.ffn(state),
        moe_token_dispatcher_type="alltoall",
        moe_router_load_balancing_type="none",
        moe_expert_capacity_factor=None if state.host_counts else 1.0,
        moe_pad_expert_input_to_capacity=not state.host_counts,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        gradient_accumulation_fusion=False,
        use_cpu_initialization=True,
        params_dtype=getattr(torch, sizes.dtype),
        bf16=sizes.dtype == "bfloat16",
    )


def megatron_layers(torch: Any, sizes: Sizes, state: State, device: str) -> tuple[list[Layer], list[Any]]:
    """The layers of a state, and their parameters. Call it within `started`."""
    dtype, config = getattr(torch, sizes.dtype), configured(torch, sizes, state)
    made = [moe_layer(config).to(device) for _ in range(sizes.layer_count)]
    norms = [torch.nn.RMSNorm(sizes.hidden, device=device, dtype=dtype) for _ in made]
    weights = [weight for module in (*norms, *made) for weight in module.parameters()]
    return [_residual(norm, layer) for norm, layer in zip(norms, made, strict=True)], weights


def _residual(norm: Any, layer: Any) -> Callable[[Any], Any]:
    """The library's layers take (sequence, batch, hidden) and give an output and a bias."""
    return lambda tokens: tokens + layer(norm(tokens).unsqueeze(1))[0].squeeze(1)


class _HostStream:
    """A CPU has one queue, so waiting, recording and synchronising do nothing."""

    def wait_stream(self, other: object) -> None: ...

    def record_event(self, event: object = None) -> _HostStream:
        return self  # stands for the event

    def synchronize(self) -> None: ...


def _host_in_place_of_cuda(torch: Any) -> list[Any]:
    queue = _HostStream()
    dispatcher = module("megatron.core.transformer.moe.token_dispatcher")
    return [
        mock.patch.object(torch.cuda, "current_device", return_value=torch.device("cpu")),
        mock.patch.object(torch.cuda, "current_stream", return_value=queue),
        mock.patch.object(torch.cuda, "Stream", return_value=queue),
        mock.patch.object(dispatcher, "maybe_move_tensor_to_cpu", _as_numbers),
        mock.patch.object(dispatcher.MoEAlltoAllTokenDispatcher, "cuda_dtoh_stream", None),
    ]


def _as_numbers(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
    return tensor.numpy() if as_numpy and hasattr(tensor, "numpy") else tensor


def module(name: str) -> Any:
    """A module of the library; `InputError` where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{name} cannot be imported ({error}). Type {INSTALL}, or leave out --megatron and --profile."
        ) from None
