"""Names that a recorder left as the linker has them: read far enough for the rules of kernels.

Namespaces, the function and where its template begins are enough; its arguments stay as they are.
"""

from typing import Final

from traces.patterns import compiled

_MANGLED: Final = compiled(r"^_ZL?(?:N[rVKRO]*)?\d")
_LENGTH: Final = compiled(r"^L?(\d{1,4})")
_UNNAMED_SCOPE: Final = "_GLOBAL__N_"


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
