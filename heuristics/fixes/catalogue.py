"""All fixes by id: those of the files beside this one whose names begin with an id, as `com_2_dispatcher`."""

import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

import heuristics.fixes
from heuristics.fixes.fix import Fix

_FAMILIES: Final = ("mem", "com", "hst", "cmp")


def _files() -> list[str]:
    """Names of files in the order of the catalogue."""
    named = [
        (_FAMILIES.index(found[1]), int(found[2]), one.name)
        for one in pkgutil.iter_modules(heuristics.fixes.__path__)
        if (found := re.match(rf"({'|'.join(_FAMILIES)})_(\d+)_", one.name))
    ]
    return [name for _, _, name in sorted(named)]


_FIXES: Final = [cast(Fix, import_module(f"heuristics.fixes.{name}").FIX) for name in _files()]
CATALOGUE: Final[Mapping[str, Fix]] = {fix.id: fix for fix in _FIXES}
"""Fix id (COM-2) -> fix, in the order of the catalogue."""
