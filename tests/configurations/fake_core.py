"""A megatron-core and a PyTorch of some lines each, which fail as they are told, where they are told.

A configuration's `config_logger_dir` says it: "layer ValueError" raises a ValueError as the layer is built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from diagnoser.megatron import check_with_megatron
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from traces.settings.core_fields import core_fields

Ask = Callable[[Sequence[Request]], list[tuple[Answer, Answer]]]

TROUBLE = """
import builtins
from enum import Enum

def trouble(config, place):
    where, _, error = (config.config_logger_dir or "").partition(" ")
    return getattr(builtins, error)("as it was told") if where == place else None
"""
CONFIG = """
from dataclasses import make_dataclass
from megatron.core.trouble import Enum, trouble
import torch

Known = Enum("Known", ["attn"])

def check(self):
    if (error := trouble(self, "config")):
        raise error
    if (error := trouble(self, "words")):
        raise type(error)
    if (error := trouble(self, "packaged")):
        from megatron.core import utils
        if not utils.HAVE_PACKAGE:
            raise error
    if (error := trouble(self, "version")):
        from megatron.core import utils
        if utils._te_version is None:
            raise error
    if (error := trouble(self, "late")):
        from megatron.core import broken
    if trouble(self, "enum_name"):
        Known["none"]
    if trouble(self, "enum_value"):
        Known("none")
    if (error := trouble(self, "torch")):
        torch.refuse(error)

def made(name):
    fields = [(field, object, DEFAULTS.get(field)) for field in FIELDS]
    return make_dataclass(name, fields, namespace={"__post_init__": check})

DEFAULTS = dict.fromkeys((
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size"), 1)
FIELDS = %r
TransformerConfig, MLATransformerConfig = made("TransformerConfig"), made("MLATransformerConfig")
"""
SPECS = """
from functools import partial
from megatron.core.trouble import trouble

class MoELayer:
    def __init__(self, config, submodules, layer_number=None):
        if (error := trouble(config, "layer")):
            raise error

def get_moe_module_spec(use_te, num_experts, moe_grouped_gemm):
    if num_experts == 13:
        raise ValueError("as it was told")
    if num_experts == 14:
        raise AttributeError("as it was told")
    return {15: None}.get(num_experts, partial(MoELayer, submodules=None))
"""
STATE = """
def initialize_model_parallel(expert_tensor_parallel_size, **sizes):
    if expert_tensor_parallel_size == 13:
        raise RuntimeError("world_size (8) is not divisible by 13")
    assert expert_tensor_parallel_size != 14, "group is not initialized"

def set_pipeline_model_parallel_rank(rank): ...
def destroy_model_parallel(): ...
"""
BLOCK = """
from megatron.core.trouble import trouble

def get_num_layers_to_build(config, vp_stage=None):
    if (error := trouble(config, "stages")):
        raise error
"""
TORCH = """
from contextlib import nullcontext
from types import SimpleNamespace
import sys

__version__ = "2.13.0"
bfloat16 = float16 = float32 = float64 = object()
nn = SimpleNamespace(functional=SimpleNamespace(silu=0, gelu=1, relu=2))
cuda = SimpleNamespace(current_device=0, current_stream=0, Stream=0, Event=0)
distributed = SimpleNamespace(init_process_group=lambda *a, **k: None, destroy_process_group=lambda: None)
device = lambda name: nullcontext()

def refuse(error):
    raise error
"""
MODE = """
class TorchFunctionMode:
    def __enter__(self): ...
    def __exit__(self, *raised): ...
"""
FILES = {
    "megatron/core/__init__.py": '__version__ = "0.19.2"\n',
    "megatron/core/trouble.py": TROUBLE,
    "megatron/core/broken.py": 'raise ValueError("as it was told")\n',
    "megatron/core/utils.py": "_te_version = None\nHAVE_PACKAGE = False\n",
    "megatron/core/parallel_state.py": STATE,
    "megatron/core/transformer/__init__.py": "",
    "megatron/core/transformer/enums.py": "import enum\nAttnBackend = enum.Enum('AttnBackend', ['auto'])\n",
    "megatron/core/transformer/spec_utils.py": "def build_module(spec, **given):\n    spec.module(**given)\n",
    "megatron/core/transformer/transformer_block.py": BLOCK,
    "megatron/core/transformer/moe/__init__.py": "",
    "megatron/core/transformer/moe/moe_utils.py": "",
    "megatron/core/transformer/moe/token_dispatcher.py": "",
    "megatron/core/models/gpt/moe_module_specs.py": SPECS,
    "megatron/core/models/common/embeddings/rope_utils.py": "",
    "torch/__init__.py": TORCH,
    "torch/overrides.py": MODE,
    "torch/utils/cpp_extension.py": "",
    "torch/testing/_internal/distributed/fake_pg.py": "class FakeStore: ...\n",
}
"""Folders without an `__init__` are packages as well."""


def fake_core(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> Ask:
    """Asks a worker that finds the two; `changed`: what stands in a module of core in place of its text."""
    fields = sorted({*core_fields().always, *core_fields().sometimes})
    texts = {**FILES, "megatron/core/transformer/transformer_config.py": CONFIG % (fields,)}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return lambda requests: check_with_megatron(requests, python=sys.executable)
