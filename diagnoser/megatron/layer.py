"""Real process groups, pipeline stages and one real MoE layer of any world, in this one process.

The groups are of torch's `fake` backend, which opens no connection; parameters are on torch's `meta` device,
which holds shapes and no numbers, so the sizes are the run's own. Rank 0 is built.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final
from unittest import mock

ONLY_IN_KERNELS: Final = ("fp8", "fp4", "moe_latent_size", "moe_permute_fusion")
"""What a layer can only be built with on a GPU; the configuration was checked with it."""


def build_layer(torch: ModuleType, config: Any, world_size: int) -> tuple[str, ...]:
    """Build groups, stages and an MoE layer of a built configuration, and take all down again.

    Gives the names of `ONLY_IN_KERNELS` that were left out. `config` is changed. Raises what the library
    raises.
    """
    with _world(torch, config, world_size):
        _stages(config)
        without = tuple(name for name in ONLY_IN_KERNELS if getattr(config, name, None))
        if config.num_moe_experts is None:
            return ()
        for name in without:
            setattr(config, name, None)
        config.gradient_accumulation_fusion = False
        config.perform_initialization = False
        config.use_cpu_initialization = True
        specs = import_module("megatron.core.models.gpt.moe_module_specs")
        build = import_module("megatron.core.transformer.spec_utils").build_module
        spec = specs.get_moe_module_spec(
            use_te=False, num_experts=config.num_moe_experts, moe_grouped_gemm=False
        )
        with _no_gpu(torch):
            build(spec, config=config, layer_number=1)
        return without


@contextmanager
def _world(torch: ModuleType, config: Any, world_size: int) -> Iterator[None]:
    state = import_module("megatron.core.parallel_state")
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    torch.distributed.init_process_group("fake", store=store, rank=0, world_size=world_size)
    try:
        state.initialize_model_parallel(
            tensor_model_parallel_size=config.tensor_model_parallel_size,
            pipeline_model_parallel_size=config.pipeline_model_parallel_size,
            virtual_pipeline_model_parallel_size=config.virtual_pipeline_model_parallel_size,
            context_parallel_size=config.context_parallel_size,
            expert_model_parallel_size=config.expert_model_parallel_size,
            expert_tensor_parallel_size=config.expert_tensor_parallel_size,
            create_gloo_process_groups=False,  # gloo would open connections
        )
        yield
    finally:
        with suppress(Exception):  # groups half made cannot always be taken down
            state.destroy_model_parallel()
        torch.distributed.destroy_process_group()


def _stages(config: Any) -> None:
    """Cut the layers into every pipeline stage; the library checks the division."""
    cut = import_module("megatron.core.transformer.transformer_block").get_num_layers_to_build
    chunks = config.virtual_pipeline_model_parallel_size
    for rank in range(config.pipeline_model_parallel_size):
        for chunk in range(chunks) if chunks else (None,):
            cut(config, vp_stage=chunk, pp_rank=rank)


class _Queue:
    """Stands for a CUDA stream, of which a layer being built only wants one to keep."""


@contextmanager
def _no_gpu(torch: ModuleType) -> Iterator[None]:
    """The MoE layer asks CUDA for its device and for streams whatever it is built for."""
    queue = _Queue()
    with ExitStack() as undo:
        for name, stand_in in (
            ("current_device", torch.device("meta")),
            ("current_stream", queue),
            ("Stream", queue),
        ):
            undo.enter_context(mock.patch.object(torch.cuda, name, return_value=stand_in))
        undo.enter_context(torch.device("meta"))
        yield
