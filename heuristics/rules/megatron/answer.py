"""Answers of the real megatron-core, and what its words mean: a rejection, or something this host lacks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.rules.megatron.core_fields import SOMETIMES
from heuristics.rules.megatron.request import Request
from traces.limits import Limit
from traces.settings.settings import Value

Tier = Literal["config", "layer"]
Kind = Literal["ok", "rejected", "needs", "no_such_knob", "not_checked"]

LONGEST: Final = Limit(240, "characters", "ours: a long message of the library is two lines of a terminal")

TRANSFORMER_ENGINE: Final = "Transformer Engine"
FLEX_PACKAGES: Final = ("DeepEP", "HybridEP")
_UNTOLD_TE: Final = (
    r"'>=?' not supported between instances of 'NoneType' and '(?:Pkg)?Version'",
    r"cannot import name 'fused_",
    r"Please install TE >=",
)
"""What megatron-core 0.14 to 0.16.1 says where it asks for a Transformer Engine that is not there."""

_LACKING: Final = (
    (r"DeepEP is not installed", "DeepEP"),
    (r"HybridEP is not installed", "HybridEP"),
    (r"(?i)transformer[ _]?engine is (?:required|not installed)|requires? TE\b", TRANSFORMER_ENGINE),
    (r"gradient_accumulation_fusion set to True but the custom CUDA extension", "Apex"),
    (r"(?i)apex is (?:required|not (?:installed|available))", "Apex"),
    (r"(?i)(?:grouped_gemm|flashinfer|flash_attn|mamba_ssm|nvshmem)\b.*(?:not|n't) ", "another package"),
    (r"No module named", "another package"),
    (r"Must have at least torch version|torch version <", "another PyTorch"),
    (r"not compiled with CUDA|No CUDA GPUs|NVIDIA driver", "a GPU"),
)
"""What this host lacks, by the library's words, whatever the configuration."""

_CURES: Final = {
    TRANSFORMER_ENGINE: "--te-version",
    FLEX_PACKAGES[0]: "--flex-package",
    FLEX_PACKAGES[1]: "--flex-package",
}

_WRAPPED: Final = re.compile(r" ?when instantiating \w+$")
"""megatron.core.transformer.spec_utils.build_module adds it to every message."""

_WITH_OWN_WORDS: Final = (
    "ValueError",
    "AssertionError",
    "RuntimeError",
    "NotImplementedError",
    "ImportError",
)
_PATH: Final = re.compile(r"\(?(?:[A-Za-z]:)?(?:[\\/][\w.+@~ -]+){2,}[\\/]?\)?")
_PLAIN_WORD: Final = re.compile(r"[a-z_]+\d{0,2}[a-z_]*\d{0,2}")
_LONGEST_WORD: Final = 24
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What one tier says of one configuration.

    `tier`: `config` builds the configuration, `layer` also the ranks' groups, the pipeline's stages and one
    MoE layer. `version`: of the megatron-core that was asked, empty where none was.
    """

    tier: Tier
    answer: Kind
    text: str
    version: str = ""


def host_lacks(error: str, message: str, te_known: bool) -> str | None:
    """What this host lacks, where an error tells of nothing but that; None: it is about the configuration.

    `error`: the exception's type. `te_known`: a version of Transformer Engine is assumed.
    """
    if not te_known and any(re.search(pattern, message) for pattern in _UNTOLD_TE):
        return TRANSFORMER_ENGINE
    if error == "ModuleNotFoundError":
        return "another package"
    return next((what for pattern, what in _LACKING if re.search(pattern, message)), None)


def words(error: str, message: str, statement: str, fields: Mapping[str, Value]) -> str:
    """The library's own words on one line: no paths, no odd value of the configuration, not endless.

    `statement`: the line of the library that raised, used where it gave no words.
    """
    text = _WRAPPED.sub("", " ".join(message.split()))
    if not text:
        text = f"{error} at {' '.join(statement.split())}" if statement else error
    elif error not in _WITH_OWN_WORDS:
        text = f"{error}: {text}"
    text = _PATH.sub("", text).strip()
    for name, value in fields.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, str) and part in text and not _is_plain(part):
                text = text.replace(part, f"<{name}>")
    most = int(LONGEST.value)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def accepted(request: Request, tier: Tier, version: str, without: Iterable[str] = ()) -> Answer:
    """`without`: what the layer was built without, because only its kernels know it."""
    done = "the configuration is accepted" if tier == "config" else _built(request)
    left_out = ", ".join(without)
    text = done + (f", without {left_out}" if left_out else "")
    return Answer(tier, "ok", text + _on_what(request, tier, version), version)


def rejected(request: Request, tier: Tier, version: str, said: str) -> Answer:
    """`said`: the library's words."""
    return Answer(tier, "rejected", said + _other_version(request, version), version)


def needs(request: Request, tier: Tier, version: str, lacking: Iterable[str], *, rest_fits: bool) -> Answer:
    """`lacking`: what this host lacks. `rest_fits`: with stand-ins for them all else was accepted."""
    what = " and ".join(lacking)
    head = (
        f"accepted where {what} is there and new enough" if rest_fits else f"needs {what}, which is not here"
    )
    cures = [cure for name, cure in _CURES.items() if name in what and rest_fits]
    return Answer(
        tier, "needs", ": give ".join((head, *cures[:1])) + _other_version(request, version), version
    )


def no_such_knob(request: Request, version: str, names: Iterable[str]) -> Answer:
    """`names`: fields that the megatron-core that was asked does not have."""
    listed = ", ".join(f"{name}{_where(name)}" for name in names)
    text = f"megatron-core {version} has no {listed}"
    return Answer("config", "no_such_knob", text + _other_version(request, version), version)


def not_checked(tier: Tier, because: str, version: str = "") -> Answer:
    """Where nothing was built."""
    return Answer(tier, "not_checked", because, version)


def _built(request: Request) -> str:
    layer = " and an MoE layer" if request.fields.get("num_moe_experts") else ""
    return f"{request.world_size} ranks{layer} are built"


def _on_what(request: Request, tier: Tier, version: str) -> str:
    """On which ground something was accepted."""
    counts = {"size": len(request.assumed_sizes), "option": len(request.assumed_options)}
    filled = [f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count]
    text = f", with {' and '.join(filled)} assumed" if filled else ""
    if request.te_version and tier == "config":
        text += f", with {TRANSFORMER_ENGINE} {request.te_version} taken as given"
    return text + _other_version(request, version)


def _other_version(request: Request, version: str) -> str:
    if request.core_version is None or request.core_version == version:
        return ""
    return f"; asked was megatron-core {version}, the run has {request.core_version}"


def _where(name: str) -> str:
    if name not in SOMETIMES:
        return ""
    field = SOMETIMES[name]
    return f" (from {field.since}{f' to {field.until}' if field.until else ''})"


def _is_plain(value: str) -> bool:
    """An ordinary word of configurations; anything else might be a secret and is not repeated."""
    if len(value) < _SHORTEST_SECRET:
        return True
    return len(value) <= _LONGEST_WORD and _PLAIN_WORD.fullmatch(value) is not None
