"""A kept result as we may say it again: its sentences known by our tables, its lines made of our
settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from heuristics.result.texts import AnyStruct, Refused, changed
from reports.redaction import public_name
from reports.result.fill.shown import is_public
from reports.result.voice.book import LONGEST, Reading, book
from reports.result.voice.lines import is_command
from traces.formats.known_texts import gpu_name
from traces.names.file_names import is_file, told_name
from traces.patterns import compiled
from traces.settings.line_parts import LOADS
from traces.spelling import counted
from traces.texts import TextKind

NOT_OURS: Final = "[left out: not in the words of this release]"
"""In place of a text that is to be ours and that this release does not say."""
_WHO: Final = "another release or a person wrote that. Make the result again"
P = TypeVar("P")
_KEY: Final = compiled(r"(?:-{0,2}[A-Za-z0-9_][A-Za-z0-9_.+:#-]{0,120})?")
_RELEASE: Final = compiled(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,60}")
_LONGEST_PLACE: Final = 200
_AT: Final = compiled(r"(?P<file>.*?)(?P<line>:\d{1,9})?")
_IN_DOCUMENT: Final = compiled(
    r"[A-Za-z_][A-Za-z0-9_.-]*(?:\[(?:\d{1,6}|\*)\])?(?:[.A-Za-z0-9_\[\]*-]*)"
)
_CUT: Final = (60, 40)
"""To how many characters sentences cut a name of a kernel."""
_SHORTEST: Final = 12
"""Shorter names are words."""


def kept(result: AnyStruct) -> AnyStruct:
    """The result, as read from a file. Raises `NotAResult` for a word that programs go by and that
    is none.

    What is to be ours and is not known is not shown, and counted in the warnings; names are told as
    in every result.
    """
    redacted: bool = result.redacted  # type: ignore[attr-defined]  # of whole results
    checker = _WordCheck(redacted, *_names_in(result, redacted))
    shown = changed(result, checker)
    if not checker.strange:
        return shown
    one = "text of this result is left out, as it is"
    many = "texts of this result are left out, as they are"
    warning = f"{counted(checker.strange, one, many)} not in the words of this moe-diag: {_WHO}"
    return replace(shown, warnings=(*shown.warnings, warning))  # type: ignore[attr-defined]  # of whole results


def in_our_words(part: P) -> P:
    """A part of a result that somebody gives as symptoms, or several. Raises as `kept` does."""
    if isinstance(part, Struct):
        return changed(part, _WordCheck(True, {}, []))
    return tuple(map(in_our_words, part)) if isinstance(part, tuple) else part  # type: ignore[return-value]


class _WordCheck:
    """What is asked of each kind of text, and how many were none of ours.

    `files`: names that its sentences may have, each as it may be told; `recorded`: those of kernels
    and the like, the longest first.
    """

    def __init__(self, redacted: bool, files: Mapping[str, str], recorded: Sequence[str]) -> None:
        self.strange = 0
        self._book = book()
        self._redacted = redacted
        self._names = frozenset(files.values())
        self._reading = Reading(self._book, self._names)
        self._known = dict[str, bool]()
        self._withheld = {name: public for name, public in files.items() if name and name != public}
        self._recorded_names = recorded

    def __call__(self, kind: TextKind, text: Any) -> Any:
        match kind:
            case TextKind.SAID:
                return self._said(text)
            case TextKind.TYPED if not self._book.types(text):
                return self._strange(None)
            case TextKind.COMMAND:
                text = self._told(text)
                if is_command(text):
                    return text
                return self._strange("moe-diag --help")
            case TextKind.GPU if not gpu_name(text):
                return self._strange()
            case TextKind.FILE:
                return self._file(text)
            case TextKind.PLACE:
                return self._place(text)
            case TextKind.RECORDED:
                return public_name(text, redact=self._redacted)
            case TextKind.GIVEN:
                return self._given(text)
            case TextKind.KEY if _KEY.fullmatch(text) is None or LOADS.search(text):
                raise Refused("is no word of a result")
            case TextKind.RELEASE if _RELEASE.fullmatch(text) is None or LOADS.search(text):
                raise Refused("is no version")
            case TextKind.PATH if self._redacted:
                raise Refused("is a path in a result that holds none")
        return text

    def _strange(self, instead: str | None = NOT_OURS) -> str | None:
        self.strange += 1
        return instead

    def _told(self, text: str) -> str:
        """A sentence or a line with the names in it as they may be told."""
        for name, public in self._withheld.items():
            text = text.replace(name, public)
        return text

    def _said(self, text: str) -> str | None:
        shown = plain = self._told(text)
        if shown == NOT_OURS or self._says(shown):
            return shown
        if len(plain) <= LONGEST.value:  # with a word of ours for each name of the recording in it
            for name in self._recorded_names:
                plain = plain.replace(name, "kernel")
        if self._says(plain):
            return shown
        return self._strange()

    def _says(self, text: str) -> bool:
        if text not in self._known:
            if self._reading.is_over:
                raise Refused("is one of too many texts that are none of ours")
            self._known[text] = self._reading.says(text)
        return self._known[text]

    def _file(self, text: str) -> str:
        if self._redacted:
            return told_name(text)
        return text

    def _place(self, text: str) -> str | None:
        at = _AT.fullmatch(text)
        if not at or len(text) > _LONGEST_PLACE:
            return self._strange()
        if text in self._names or _IN_DOCUMENT.fullmatch(text) or self._says(text):
            return text
        return f"{self._file(at['file'])}{at['line'] or ''}"

    def _given(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [*map(self._given, value)]
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str) and (not self._redacted or is_public(value) or self._says(value)):
            return value
        return self._strange()


def _names_in(result: Struct, redacted: bool) -> tuple[dict[str, str], list[str]]:
    """Names of files that sentences may have, each as it may be told, and names of what was
    recorded.
    """
    files, recorded = {}, dict[str, None]()

    def note(kind: TextKind, text: Any) -> Any:
        at = _AT.fullmatch(text) if kind is TextKind.PLACE else None
        if kind is TextKind.FILE or (at and (at["line"] or is_file(text))):
            name = at["file"] if at else text
            files[name] = told_name(name) if redacted else name
        elif kind is TextKind.RECORDED:
            public = public_name(text, redacted)
            for most in (len(public), *_CUT):
                recorded[public[:most]] = None
        return text

    changed(result, note)
    return files, sorted(
        (name for name in recorded if len(name) >= _SHORTEST), key=len, reverse=True
    )
