"""The oldest releases that `pyproject.toml` promises, one `name==release` a line, as pip takes them.

`.ci/try-wheel --all` installs them. What they depend on is the newest, as it is on a user's machine.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PYPROJECT: Final = Path(__file__).resolve().parents[2] / "pyproject.toml"
_BOUND: Final = re.compile(r"([\w-]+)>=([\d.]+)")


def oldest(dependencies: Sequence[str]) -> list[str]:
    """Each dependency at its lower bound. Raises `ValueError` for one that has none."""
    found = [_BOUND.match(one) for one in dependencies]
    if None in found:
        raise ValueError(f"{dependencies[found.index(None)]} has no lower bound: write name>=release")
    return [f"{one[1]}=={one[2]}" for one in found if one]


def promised() -> list[str]:
    """Those of the default install and of the cluster's extra."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    return oldest([*project["dependencies"], *project["optional-dependencies"]["cluster"]])


if __name__ == "__main__":
    print("\n".join(promised()))
