"""Names of the recorded program in a result: without what may be a secret, an address, a host or a
user.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from heuristics.result.texts import AnyStruct, changed
from reports.redaction import public_name
from traces.names.file_names import WITHHELD
from traces.texts import TextKind

if TYPE_CHECKING:
    from traces.columns import TraceInfo


def with_public_names(result: AnyStruct, redact: bool, infos: Iterable[TraceInfo]) -> AnyStruct:
    """The result with recorded names as they may be told, in its sentences too; `infos`: of its
    traces.
    """
    own = {*chain.from_iterable(info.own_names for info in infos)}
    public_texts = {}

    @cache  # hundreds of ranks run the same kernels
    def public(text: str) -> str:
        return public_name(text, redact, own)

    def name(kind: TextKind, text: Any) -> Any:
        if kind is not TextKind.RECORDED:
            return text
        if public(text) != text:
            public_texts[text] = public(text)
        return public(text)

    def sentence(kind: TextKind, text: Any) -> Any:
        if kind is TextKind.SAID:
            for recorded, public in public_texts.items():
                text = text.replace(recorded, public)
        return text

    renamed = changed(result, name)
    if public_texts:
        return changed(renamed, sentence)
    return renamed


def has_withheld(result: Struct) -> bool:
    """Whether the name of a file in a result was told in part."""
    withheld = []

    def note(kind: TextKind, text: Any) -> Any:
        if kind is TextKind.FILE and WITHHELD in text:
            withheld.append(text)
        return text

    changed(result, note)
    return bool(withheld)
