"""Names of a file that its release of Megatron-Core does not have: they came later, or are gone."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from traces.settings.core_fields import core_fields
from traces.settings.draft import Draft
from traces.settings.knobs import FIRST, MAIN, Knob, Release, by_flag, by_path, release
from traces.settings.settings import ProblemEffect

_CORE_GROUPS: Final = ("model.", "ddp.", "optimizer.")
"""Groups of a Bridge configuration whose classes are Megatron-Core's."""
_BRIDGE_TOO: Final = (
    "model.use_transformer_engine_op_fuser",
    "model.async_tensor_model_parallel_allreduce",
)
"""Fields that Bridge's model classes have, whatever Megatron-Core has (v0.3.1 to 0.6.2,
models/)."""


class NameLifetime(NamedTuple):
    """A name is there from `since` on, and no more in `until`; `knob`: of what."""

    since: Release
    until: Release | None = None
    knob: str = ""


def stay_of_flag(flag: str) -> NameLifetime | None:
    """Of a flag of Megatron-LM, by the first knob it sets; None where it is an older name."""
    for knob, _ in by_flag().get(flag, ()):
        if flag in (knob.flag, knob.off):
            return NameLifetime(max(knob.flag_since, knob.renamed), knob.until, knob.id)
    return None


def stay_of_path(path: str) -> NameLifetime | None:
    """Of a field of Megatron-Core by its path in a Bridge configuration; None of all others."""
    if not path.startswith(_CORE_GROUPS) or path in _BRIDGE_TOO:
        return None
    name = path.rpartition(".")[2]
    knob = by_path().get(path)
    if not knob:
        field = core_fields().sometimes.get(name) if path.startswith("model.") else None
        if not field:
            return None
        return NameLifetime(release(field.since) or FIRST)
    if path != knob.bridge or knob.source.startswith("megatron/training"):
        return None
    return NameLifetime(max(knob.since, knob.renamed), knob.until, knob.id)


def say_if_absent(
    draft: Draft,
    name: str,
    stay: NameLifetime | None,
    line: int | None,
    effect: ProblemEffect = "unread",
) -> None:
    """Note that a release does not have a name. `name`: one that may be shown."""
    if stay is None or draft.core is None:
        return
    if draft.core < stay.since:
        text, cure = _came_with(name, stay.since)
        draft.problem(line, text, cure, effect, stay.knob)
    elif stay.until is not None and draft.core >= stay.until:
        draft.problem(
            line, f"{name} left with Megatron-Core {_text(stay.until)}", "leave it out", effect
        )


def say_later_words(
    draft: Draft,
    name: str,
    knob: Knob,
    words: Iterable[str],
    line: int | None,
    effect: ProblemEffect = "unread",
) -> None:
    """Note words that a later release brought."""
    if draft.core is None:
        return
    known = knob.words_in(draft.core)
    for word in words:
        if word in knob.new_choices and word not in known:
            text, _ = _came_with(f"{name} {word}", knob.new_choices[word])
            newer = "" if effect == "stops" else knob.id
            draft.problem(line, text, f"one of {', '.join(known)}", effect, newer)


def _came_with(name: str, since: Release) -> tuple[str, str]:
    if since >= MAIN:
        return f"{name} is on Megatron-Core's main alone, in no release", "leave it out"
    return (
        f"{name} came with Megatron-Core {_text(since)}",
        f"Megatron-Core {_text(since)} or later, or leave it out",
    )


def _text(since: Release) -> str:
    if since == MAIN:
        return "0.20"
    return ".".join(map(str, since))
