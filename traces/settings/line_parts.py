"""What a line to type may be made of: values of settings, and what of a text is never in one."""

from typing import Final

from traces.patterns import compiled

UNSAFE: Final = compiled(r"[;`|&$<>\\\x00-\x1f\x7f]")
"""What makes a shell run something else, read or write a file, or begin a new line."""
LOADS: Final = compiled(r"(?:^|[^A-Za-z])(?:DY)?LD_")
"""Variables that make a program load what another has written."""
VALUE: Final = "VALUE"
"""Stands for a value that no line of ours may have."""
_LAYOUT: Final = compiled(r"[EmtdL|()*0-9]{1,400}")
_BARE: Final = compiled(r"[\w.,:/=@%+-]*")


def is_layout(text: str) -> bool:
    """Whether it is stages of a pipeline by their letters, as `Et*3|(tt|)*2mL`."""
    return _LAYOUT.fullmatch(text) is not None


def is_bare(text: str) -> bool:
    """Whether it may stand in a line as it is."""
    return _BARE.fullmatch(text) is not None and LOADS.search(text) is None


def as_word(text: str) -> str:
    """A value as one word of a line: as it is, letters of stages in quotes, any other as
    `VALUE`.
    """
    if is_layout(text) and not is_bare(text):
        return f'"{text}"'
    if is_bare(text):
        return text or '""'
    return VALUE
