"""The installed megatron-core: its classes and fields, configurations and one real MoE layer built
with it.

Only `diagnoser.megatron.worker` imports this, in a process of its own: what is assumed of other
packages is put into the library's own global names.

Of a layer the process groups are of torch's `fake` backend, which opens no connection; parameters
are on torch's `meta` device, which holds shapes and no numbers, so the sizes are the run's own.
Rank 0 is built.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, Final
from unittest import mock

from diagnoser.megatron.layer import moe_layer
from heuristics.config.versions import numbers
from heuristics.rules.megatron.answer import FLEX_PACKAGES, PACKAGES, PYTORCH, TRANSFORMER_ENGINE
from heuristics.rules.megatron.request import Request
from traces.settings.core_fields import core_fields
from traces.settings.settings import Value, Values
from traces.texts import Texts

NEWEST: Final = "99"
"""Newer than any release of a package: what is rejected even then is rejected whatever the run
has."""

_FUSED: Final = {
    ("megatron.core.transformer.moe.moe_utils", "2.1.0"): (
        "fused_permute",
        "fused_permute_with_probs",
        "fused_unpermute",
        "fused_sort_chunks_by_index",
        "fused_sort_chunks_by_index_with_probs",
    ),
    ("megatron.core.models.common.embeddings.rope_utils", "1.4"): (
        "fused_apply_rotary_pos_emb",
        "fused_apply_rotary_pos_emb_thd",
    ),
}
"""Functions that megatron-core looks for before it accepts a fusion, and the Transformer Engine
that brings them: its messages "Please install TE >= 2.1.0" and ">= 1.4" (transformer_config.py of
core_v0.16.1)."""

_OF_FLEX: Final = {
    "DeepEP": ("fused_dispatch", "fused_combine", "set_deepep_num_sms"),
    "HybridEP": ("hybrid_ep_dispatch", "hybrid_ep_combine"),
    "NCCL EP": ("nccl_ep_dispatch", "nccl_ep_combine", "new_nccl_ep_buffer"),
}
"""What the flex dispatcher wants of each package (token_dispatcher.py of core_v0.16.1 and
0.19.2)."""

_DISPATCHER: Final = "megatron.core.transformer.moe.token_dispatcher"
_USED: Final = (
    "megatron.core.transformer.transformer_config",
    "megatron.core.transformer.transformer_block",
    "megatron.core.models.gpt.moe_module_specs",
    "megatron.core.parallel_state",
    _DISPATCHER,
)

_DTYPES: Final = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"}
_DTYPE_FIELDS: Final = (
    "params_dtype",
    "pipeline_dtype",
    "autocast_dtype",
    "mamba_training_ssm_states_dtype",
)


class Library:
    """The installed megatron-core. Raises whatever its import raises."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        tempfile.tempdir = os.sep  # asked for the place, Python writes a file to try it
        self.torch = import_module("torch")
        # Releases of 0.15 compile for CUDA as they are imported, and do without where that fails.
        with _named("torch.utils.cpp_extension", "load_inline", _not_compiled):
            config, *_ = map(import_module, _USED)
        self.version: str = import_module("megatron.core").__version__
        self._utils = import_module("megatron.core.utils")
        self._versions = import_module("packaging.version")
        self._enums = import_module("megatron.core.transformer.enums")
        self._plain, self._mla = config.TransformerConfig, config.MLATransformerConfig
        self._known = {
            config_class: frozenset(config_class.__dataclass_fields__)
            for config_class in (self._plain, self._mla)
        }

    def unknown(self, request: Request) -> Texts:
        """Fields of the request that this version lacks; those left as they are by default do not
        count.
        """
        fields = self._spelled(request)
        known, sometimes = self._known[self._config_class(fields)], core_fields().sometimes
        lacking = []
        for name, value in fields.items():
            is_default = name in sometimes and value == sometimes[name].default
            if name not in known and value not in (None, False, (), [], "") and not is_default:
                lacking.append(name)
        return tuple(lacking)

    def build(self, request: Request) -> Any:
        """The configuration object. Raises what the library raises."""
        fields = self._spelled(request)
        chosen = self._config_class(fields)
        known = self._known[chosen]
        return chosen(
            **{name: self._value(name, value) for name, value in fields.items() if name in known}
        )

    @contextmanager
    def assumed(self, there: Collection[str], te_version: str | None) -> Iterator[None]:
        """Answer as where these packages are there, each the newest; with the Transformer Engine
        told.

        The versions are put into private names, which a release may lack; then nothing is assumed.
        """
        te_version = NEWEST if TRANSFORMER_ENGINE in there else te_version
        with ExitStack() as undo:
            if te_version is not None and hasattr(self._utils, "_te_version"):
                version = self._versions.Version(te_version)
                undo.enter_context(mock.patch.object(self._utils, "_te_version", version))
                for (module, since), names in _FUSED.items():
                    stand_in = _never_called if numbers(te_version) >= numbers(since) else None
                    for name in names:
                        undo.enter_context(_named(module, name, stand_in))
            if PYTORCH in there and hasattr(self._utils, "_torch_version"):
                newest = self._versions.Version(NEWEST)
                undo.enter_context(mock.patch.object(self._utils, "_torch_version", newest))
            for package in {*FLEX_PACKAGES} & {*there}:
                for name in _OF_FLEX[package]:
                    undo.enter_context(_named(_DISPATCHER, name, _never_called))
            for module, name in _flags() if PACKAGES in there else ():
                undo.enter_context(_named(module, name, True))
            yield

    def _config_class(self, fields: Mapping[str, Value]) -> Any:
        if fields.get("multi_latent_attention") is True:
            return self._mla
        return self._plain

    def _spelled(self, request: Request) -> Values:
        """The request's fields in this version's spelling.

        Before 0.18 CUDA graph modules were a scope, before 0.16 DeepEP had a switch of its own.
        """
        fields, known = dict(request.fields), self._known[self._plain]
        if (
            "moe_flex_dispatcher_backend" not in known
            and fields.get("moe_token_dispatcher_type") == "flex"
        ):
            fields.setdefault(
                "moe_enable_deepep", fields.get("moe_flex_dispatcher_backend") == "deepep"
            )
        if "cuda_graph_modules" in known:
            return fields
        if "cuda_graph_modules" in fields:
            fields["cuda_graph_scope"] = fields.pop("cuda_graph_modules")
        newer = numbers(request.core_version or "0") >= (0, 18, 0)
        if newer and fields.get("cuda_graph_impl") == "full_iteration":
            fields |= {"cuda_graph_impl": "local", "cuda_graph_scope": ("full_iteration",)}
        return fields

    def _value(self, name: str, value: Value) -> Any:
        if isinstance(value, tuple | list):
            return list(value)
        if not isinstance(value, str):
            return value
        last = value.rpartition(".")[2]
        if name in _DTYPE_FIELDS:
            return getattr(self.torch, _DTYPES.get(last, last))
        if name == "activation_func":
            functional = self.torch.nn.functional
            if last in ("silu", "gelu", "relu"):
                return getattr(functional, last)
            return functional.gelu
        if name == "attention_backend":
            return self._enums.AttnBackend[last]
        return value


def _named(module: str, name: str, value: object) -> AbstractContextManager[object]:
    return mock.patch.object(import_module(module), name, value, create=True)


def _flags() -> list[tuple[str, str]]:
    """Where megatron-core keeps that a package is not here: HAVE_TE, HAVE_FLASHINFER, and others so
    named.
    """
    flags = []
    for module_name, module in sys.modules.items():
        for name, value in vars(module).items() if module_name.startswith("megatron.") else ():
            if name.startswith("HAVE_") and value is False:
                flags.append((module.__name__, name))
    return flags


def _never_called(*given: object) -> None:
    """Stands where a function of another package would: building only looks whether it is there."""


def _not_compiled(*given: object, **named: object) -> None:
    raise ImportError("nothing is compiled to answer")


ONLY_IN_KERNELS: Final = ("fp8", "fp4", "moe_latent_size", "moe_permute_fusion")
"""What a layer can only be built with on a GPU; the configuration was checked with it."""


def build_layer(torch: ModuleType, config: Any, world_size: int) -> Texts:
    """Build groups, stages and an MoE layer of a built configuration, and take all down again.

    Gives the names of `ONLY_IN_KERNELS` that were left out. `config` is changed. Raises what the
    library raises.
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
        with _no_gpu(torch):
            moe_layer(config, layer_number=1)
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
    state = import_module("megatron.core.parallel_state")
    cut = import_module("megatron.core.transformer.transformer_block").get_num_layers_to_build
    chunks = config.virtual_pipeline_model_parallel_size
    for rank in (*range(config.pipeline_model_parallel_size), None):  # None: as the groups have it
        state.set_pipeline_model_parallel_rank(rank)
        for chunk in range(chunks) if chunks else (None,):
            cut(config, vp_stage=chunk)


@contextmanager
def _no_gpu(torch: ModuleType) -> Iterator[None]:
    """The MoE layer asks CUDA for its device and for streams whatever it is built for, and names
    it.
    """
    # a layer being built only wants one to keep
    meta = torch.device("meta")
    stand_ins = {
        "current_device": meta,
        **dict.fromkeys(("current_stream", "Stream", "Event"), SimpleNamespace()),
    }
    mode = import_module("torch.overrides").TorchFunctionMode

    class MetaForCuda(mode):  # type: ignore[misc, valid-type]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            by_keyword = kwargs or {}
            on_cuda = str(by_keyword.get("device")).startswith("cuda")
            return func(*args, **by_keyword | ({"device": meta} if on_cuda else {}))

    with ExitStack() as undo:
        for name, stand_in in stand_ins.items():
            undo.enter_context(mock.patch.object(torch.cuda, name, return_value=stand_in))
        undo.enter_context(meta)
        undo.enter_context(MetaForCuda())
        yield
