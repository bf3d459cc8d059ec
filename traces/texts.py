"""What a text of a document is: who wrote it, and so how it is read from a file that anybody may
have edited.

A field's type says it, and `reports/result/voice` has what is asked of each kind. A bare `str` in a
document has no kind, and a test finds it.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta

EXTRA: Final = "text"
"""Under which name the metadata of a type holds the kind."""


class TextKind(StrEnum):
    """Who wrote a text, and in what form."""

    SAID = "said"
    """A sentence, a title or a source of ours, from our tables or our code, with figures filled
    in."""
    TYPED = "typed"
    """A line to type: settings or code, made of names of our tables and values that they take."""
    COMMAND = "command"
    """A line of `moe-diag`, with the names of the user's files."""
    KEY = "key"
    """A word that programs go by: a row, a setting, an id."""
    RELEASE = "release"
    """A version, as packages and recorders number them."""
    GPU = "gpu"
    """The product name of a GPU."""
    FILE = "file"
    """The base name of a user's file."""
    PLACE = "place"
    """Where something stands: a file and a line, an option, a path in the document."""
    RECORDED = "recorded"
    """A name of the recorded program: of a kernel, a range, a function."""
    GIVEN = "given"
    """The value of a setting or an option: a text, a number, a list."""
    PATH = "path"
    """A file as it was given, in results that are not redacted."""


def _text(kind: TextKind) -> Meta:
    return Meta(extra={EXTRA: kind})


Said = Annotated[str, _text(TextKind.SAID)]
Typed = Annotated[str, _text(TextKind.TYPED)]
CommandLine = Annotated[str, _text(TextKind.COMMAND)]
Key = Annotated[str, _text(TextKind.KEY)]
Release = Annotated[str, _text(TextKind.RELEASE)]
GpuName = Annotated[str, _text(TextKind.GPU)]
FileName = Annotated[str, _text(TextKind.FILE)]
Place = Annotated[str, _text(TextKind.PLACE)]
Recorded = Annotated[str, _text(TextKind.RECORDED)]
Given = Annotated[Any, _text(TextKind.GIVEN)]
GivenText = Annotated[str, _text(TextKind.GIVEN)]
FilePath = Annotated[str, _text(TextKind.PATH)]
Texts = tuple[str, ...]
"""Of one kind, in order: names, ids, lines to type, or sentences."""
Sentences = tuple[Said, ...]
Keys = tuple[Key, ...]
