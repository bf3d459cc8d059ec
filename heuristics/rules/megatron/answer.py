"""Answers of the real megatron-core in words: accepted, rejected, or not to be had here, and
why.
"""

from collections.abc import Collection, Iterable
from typing import Final, Literal

from heuristics.result.judged import AnswerKind
from heuristics.rules.megatron.request import Request
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import LETTERS, compiled
from traces.settings.core_fields import core_fields
from traces.settings.settings import Values

Tier = Literal["config", "layer"]

LONGEST: Final = Limit(
    240, "characters", "ours: a long message of the library is two lines of a terminal"
)

TRANSFORMER_ENGINE: Final = "Transformer Engine"
FLEX_PACKAGES: Final = ("DeepEP", "HybridEP", "NCCL EP")
PYTORCH: Final = "PyTorch"
PACKAGES: Final = "another package"
_CURES: Final = {
    TRANSFORMER_ENGINE: "--te-version",
    **dict.fromkeys(FLEX_PACKAGES, "--flex-package"),
}


_WRAPPED: Final = compiled(r" ?when instantiating \w+$")
"""megatron.core.transformer.spec_utils.build_module adds it to every message."""

_PATH: Final = compiled(rf"\(?(?:[A-Za-z]:)?(?:[\\/][{LETTERS}_.+@~ -]+){{2,}}[\\/]?\)?")
_PLAIN_WORD: Final = compiled(r"[a-z_]+\d{0,2}[a-z_]*\d{0,2}")
_LONGEST_WORD: Final = 24
_SHORTEST_SECRET: Final = 4


@frozen
class Answer:
    """What one tier says of one configuration.

    `tier`: `config` builds the configuration, `layer` also the ranks' groups, the pipeline's stages
    and one MoE layer. `version`: of the megatron-core that was asked, empty where none was.
    """

    tier: Tier
    answer: AnswerKind
    text: str
    version: str = ""


def refusal(error: str, message: str, statement: str, fields: Values) -> str:
    """The library's own words, or the line that raised where it gave none.

    `error`: the exception's type. `statement`: the line of the library that raised.
    """
    words = _WRAPPED.sub("", _one_line(message))
    return _shown(
        words or say("megatron.raised-at", error=error, statement=_one_line(statement)), fields
    )


def failure(error: str, message: str, place: str, fields: Values) -> str:
    """What kept us from an answer. `place`: the lines of code that it happened at."""
    words = _WRAPPED.sub("", _one_line(message))
    error_text = _shown(f"{error}: {words}" if words else error, fields)
    return say("megatron.could-not-ask", error=error_text, place=place)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str, fields: Values) -> str:
    """Without paths and odd values of the configuration, and not endless."""
    text = _PATH.sub("", text).strip()
    for name, value in fields.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, str) and part in text and not _is_plain(part):
                text = text.replace(part, f"<{name}>")
    most = LONGEST.whole
    if len(text) <= most:
        return text
    return f"{text[: most - 1].rstrip()}…"


def accepted(request: Request, tier: Tier, version: str, without: Iterable[str] = ()) -> Answer:
    """`without`: what the layer was built without, because only its kernels know it."""
    text = say("megatron.accepted")
    if tier == "layer":
        has_layer = request.fields.get("num_moe_experts")
        text = say(
            "megatron.built-with-layer" if has_layer else "megatron.built", ranks=request.world_size
        )
    counts = {"size": len(request.assumed_sizes), "option": len(request.assumed_options)}
    filled = [
        f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count
    ]
    parts = [text]
    if left_out := ", ".join(without):
        parts.append(say("megatron.without", left_out=left_out))
    if filled:
        parts.append(say("megatron.assumed", filled=" and ".join(filled)))
    if request.te_version and tier == "config":
        parts.append(say("megatron.te-given", version=request.te_version))
    return _answer(request, tier, "ok", ", ".join(parts), version)


def rejected(request: Request, tier: Tier, version: str, words: str) -> Answer:
    """`said`: the library's words."""
    return _answer(request, tier, "rejected", words, version)


def needs(request: Request, tier: Tier, version: str, lacking: Collection[str]) -> Answer:
    """`lacking`: what this host lacks, without which it is not accepted here."""
    text = say("megatron.needs", what=" and ".join(lacking))
    cures = [_CURES[name] for name in lacking if name in _CURES]
    return _answer(request, tier, "needs", ": give ".join((text, *cures[:1])), version)


def no_such_knob(request: Request, version: str, names: Iterable[str]) -> Answer:
    """`names`: fields that the megatron-core that was asked does not have."""
    fields = ", ".join(f"{name}{_where(name)}" for name in names)
    text = say("megatron.no-such-knob", version=version, fields=fields)
    return _answer(request, "config", "no_such_knob", text, version)


def not_checked(tier: Tier, because: str, version: str = "") -> Answer:
    """Where nothing was built, or asking failed."""
    return Answer(tier, "not_checked", because, version)


def _answer(request: Request, tier: Tier, answer: AnswerKind, text: str, version: str) -> Answer:
    """With the release that the run has, where that is another than the one that was asked."""
    if request.core_version not in (None, version):
        other = say("megatron.other-version", version=version, asked=request.core_version)
        text = f"{text}; {other}"
    return Answer(tier, answer, text, version)


def _where(name: str) -> str:
    if not (field := core_fields().sometimes.get(name)):
        return ""
    return f" (from {field.since}{f' to {field.until}' if field.until else ''})"


def _is_plain(value: str) -> bool:
    """An ordinary word of configurations; anything else might be a secret and is not repeated."""
    if len(value) < _SHORTEST_SECRET:
        return True
    return len(value) <= _LONGEST_WORD and _PLAIN_WORD.fullmatch(value) is not None
