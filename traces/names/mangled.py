"""Names that a recorder left as the linker has them: read far enough for the rules of kernels.

Namespaces, the function and where its template begins are enough; its arguments stay as they are.
"""

from difflib import SequenceMatcher
from typing import Final

from traces.patterns import compiled

_MANGLED: Final = compiled(r"^_ZL?(?:N[rVKRO]*)?\d")
_LENGTH: Final = compiled(r"^L?(\d{1,4})")
_UNNAMED_SCOPE: Final = "_GLOBAL__N_"
_WORD: Final = compiled(r"[A-Za-z0-9]*[^A-Za-z0-9]*")


def readable(name: str) -> str:
    """`_ZN7deep_ep9intranode7combineIiEEvPi` as `deep_ep::intranode::combine<iEEvPi`; any other as
    it is.

    By the Itanium C++ ABI each part of a name stands behind its length.
    """
    if not _MANGLED.search(name):
        return name
    rest, parts = name[2:].lstrip("LNrVKRO"), []
    while length := _LENGTH.search(rest):
        begin = length.end()
        end = begin + int(length[1])
        parts.append("<unnamed>" if rest[begin:end].startswith(_UNNAMED_SCOPE) else rest[begin:end])
        rest = rest[end:]
    return f"{'::'.join(parts)}{'<' if rest.startswith('I') else '('}{rest[1:]}"


def beside(name: str, other: str, width: int = 60) -> str:
    """A kernel's name beside another in a few characters: where it is too long, its first word and
    those that the other does not have there.
    """
    words, others = (_WORD.findall(readable(one).removeprefix("void ")) for one in (name, other))
    whole = "".join(words)
    if len(whole) > width and name != other:
        parts = words[:1] if words[:1] == others[:1] else []
        for how, _, _, begin, end in SequenceMatcher(None, others, words, False).get_opcodes():
            if how != "equal" and begin < end:
                parts.append("".join(words[begin:end]))
        whole = "...".join(part.strip("_:<>(), ") for part in parts)
    if len(whole) > width:
        return f"{whole[: width - 3]}..."
    return whole
