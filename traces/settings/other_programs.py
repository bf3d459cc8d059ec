"""Configurations of programs that are not Megatron's: what of them is alike is read, the rest is named.

torchtitan (torchtitan/config/job_config.py, 2025-03 to 2026-07): a TOML of sections, or flags
`--training.seq_len=8192`. DeepSpeed (docs/_pages/config-json.md): a JSON with `zero_optimization`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import tomli

from traces.patterns import Match, compiled, whole_number
from traces.settings.knobs import CP, EP, ETP, GLOBAL_BATCH, MICRO_BATCH, PP, TP
from traces.settings.settings import PROGRAMS, Draft, NotAConfiguration
from traces.settings.yaml_files import Document

_TITAN: Final[Mapping[str, str]] = {
    "training.local_batch_size": MICRO_BATCH,
    "training.batch_size": MICRO_BATCH,
    "training.global_batch_size": GLOBAL_BATCH,
    "training.seq_len": "seq_length",
    "parallelism.tensor_parallel_degree": TP,
    "parallelism.pipeline_parallel_degree": PP,
    "parallelism.context_parallel_degree": CP,
    "parallelism.expert_parallel_degree": EP,
    "parallelism.expert_tensor_parallel_degree": ETP,
    "training.num_workers": "data_loader.num_workers",
    "training.dataloader.num_workers": "data_loader.num_workers",
}
_TITAN_SECTIONS: Final = frozenset(
    {"training", "parallelism", "job", "metrics", "activation_checkpoint", "checkpoint", "optimizer", "model"}
)
_TITAN_FLAG: Final = compiled(
    r"--(training|parallelism)\.([a-z_]{1,40}(?:\.[a-z_]{1,40})?)(?:=|\s{1,4})[\"']?(-?[0-9]{1,9})\b"
)
_ASSIGNED: Final = compiled(r"(?m)^[ \t]*(\w+)[ \t]*=")
_TITAN_PROGRAM: Final = compiled(r"\btorchtitan\b|\brun_train\.sh\b")
_DEEPSPEED: Final = frozenset(
    {
        "zero_optimization",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "zero_allow_untested_optimizer",
        "wall_clock_breakdown",
    }
)
_DEEPSPEED_KNOBS: Final[Mapping[tuple[str, ...], str]] = {
    ("zero_optimization", "stage"): "deepspeed.zero_stage",
    ("train_micro_batch_size_per_gpu",): MICRO_BATCH,
    ("train_batch_size",): GLOBAL_BATCH,
}


def is_titan_script(text: str) -> bool:
    """Whether a script starts torchtitan with flags of its own."""
    return _TITAN_PROGRAM.search(text) is not None and _TITAN_FLAG.search(text) is not None


def take_titan_script(draft: Draft, text: str) -> None:
    """Take the flags of torchtitan that we know."""
    found = (
        (f"{one[1]}.{one[2]}", int(one[3]), text.count("\n", 0, one.start()) + 1) for one in _flags(text)
    )
    _take_titan(draft, found)


def _flags(text: str) -> Iterator[Match]:
    return _TITAN_FLAG.finditer(text)


def titan_document(text: str, name: str) -> Mapping[str, Any] | None:
    """A TOML of torchtitan's sections; None where the text is none. Raises NotAConfiguration: broken TOML."""
    if not name.lower().endswith(".toml"):
        return None
    try:
        document = tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError) as error:
        raise NotAConfiguration(f"{name}: broken TOML; correct it, or give the command line") from error
    return document if len(_TITAN_SECTIONS & {*document}) > 1 else None


def take_titan_document(draft: Draft, document: Mapping[str, Any], text: str) -> None:
    """Take what we know of its sections; `text` tells the lines."""
    found = []
    for knob in _TITAN:
        value: Any = document
        for step in knob.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            found.append((knob, value, _line(text, knob.rpartition(".")[2])))
    _take_titan(draft, found)


def _line(text: str, name: str) -> int:
    found = next((one for one in _ASSIGNED.finditer(text) if one[1] == name), None)
    return text.count("\n", 0, found.end()) + 1 if found else 1


def _take_titan(draft: Draft, found: Iterable[tuple[str, int, int]]) -> None:
    draft.framework = "torchtitan"
    for name, value, line in found:
        if (knob := _TITAN.get(name)) is not None and value > 0 - (knob == "data_loader.num_workers"):
            draft.put(knob, value, line)
    _name_the_rest(draft)


def is_deepspeed(keys: Iterable[str]) -> bool:
    """Whether outermost keys of a document are DeepSpeed's."""
    return "zero_optimization" in (known := _DEEPSPEED & {*keys}) or len(known) > 1


def take_deepspeed(draft: Draft, document: Document) -> None:
    """Take its stage of ZeRO, its batch and its precision."""
    draft.framework = "deepspeed"
    for entry in document.entries(2):
        knob = _DEEPSPEED_KNOBS.get(entry.path)
        number = whole_number(entry.raw) if isinstance(entry.raw, str) else None
        if knob is not None and number is not None:
            draft.put(knob, number, entry.line)
        elif len(entry.path) == 2 and entry.path[1] == "enabled" and entry.path[0] in ("bf16", "fp16"):
            draft.put(entry.path[0], entry.raw is True, entry.line)
    _name_the_rest(draft)


def _name_the_rest(draft: Draft) -> None:
    program = PROGRAMS[draft.framework] if draft.framework else ""
    draft.problem(
        None, f"of a configuration of {program} only batch, sizes and what known incidents ask for is read"
    )
