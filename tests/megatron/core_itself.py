"""The control: megatron-core's own classes called by hand, in a process of their own.

Requests on stdin as JSON; on stdout, for each, what its configuration and its MoE layer raised: the type and
the module of the last line, or null. Given a Transformer Engine as its cache of versions holds it.
"""

import json
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from importlib import import_module
from typing import Any

warnings.simplefilter("ignore")
from diagnoser.megatron.library import ONLY_IN_KERNELS, _no_gpu, _world  # noqa: E402
from diagnoser.megatron.worker import _stdout_of_our_own  # noqa: E402

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def told(name: str, value: Any, torch: Any) -> Any:
    if name.endswith("_dtype") and isinstance(value, str):
        return getattr(torch, DTYPES.get(value, value), value) if name != "moe_router_dtype" else value
    return torch.nn.functional.silu if name == "activation_func" else value


def configuration(request: dict[str, Any], torch: Any) -> Any:
    classes = import_module("megatron.core.transformer.transformer_config")
    said = dict(request["fields"])
    mla = said.get("multi_latent_attention") is True
    chosen = classes.MLATransformerConfig if mla else classes.TransformerConfig
    known = {one.name for one in fields(chosen)}
    if "cuda_graph_modules" not in known and "cuda_graph_modules" in said:
        said["cuda_graph_scope"] = said.pop("cuda_graph_modules")
    return chosen(**{name: told(name, value, torch) for name, value in said.items() if name in known})


def layer(request: dict[str, Any], torch: Any) -> None:
    config = configuration(request, torch)
    for name in ONLY_IN_KERNELS:
        setattr(config, name, None) if getattr(config, name, None) else None
    config.gradient_accumulation_fusion = config.perform_initialization = False
    config.use_cpu_initialization = True
    block = import_module("megatron.core.transformer.transformer_block")
    with _world(torch, config, request["world_size"]):
        for stage in range(config.virtual_pipeline_model_parallel_size or 1):
            block.get_num_layers_to_build(config, vp_stage=stage)
        if config.num_moe_experts is None:
            return
        specs = import_module("megatron.core.models.gpt.gpt_layer_specs")
        mlp = specs.get_gpt_layer_local_spec(config.num_moe_experts, False).submodules.mlp
        parts = mlp.keywords["submodules"] if isinstance(mlp, partial) else mlp.submodules
        with _no_gpu(torch):
            import_module("megatron.core.transformer.moe.moe_layer").MoELayer(config, parts, 1)


def raised(build: Callable[[], object]) -> list[str] | None:
    try:
        build()
    except Exception as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        return [type(error).__name__, frames[-1].f_globals["__name__"]]
    return None


def main() -> None:
    out = _stdout_of_our_own()
    torch: Any = import_module("torch")
    utils: Any = import_module("megatron.core.utils")
    version = import_module("packaging.version").Version
    for request in json.load(sys.stdin):
        utils._te_version = version(request["te_version"]) if request["te_version"] else None
        both = [raised(partial(build, request, torch)) for build in (configuration, layer)]
        out.write(json.dumps(both) + "\n")
        out.flush()


main()
