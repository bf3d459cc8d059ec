"""THE DOOR: the public API of moe-diag. Imports everything, imported by nobody.

    import diagnoser
    diagnosis = diagnoser.analyze(["run.nsys-rep"])
    diagnosis.to_dict()     # the JSON document, version 1.0
    diagnosis.to_frame()    # pandas: one row per rank and bucket, kind or class

Importing this package loads neither numpy nor pandas; `analyze` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnoser.diagnosis import Diagnosis
    from traces.formats.open import ReadOptions
    from traces.steps.selection import Selection

__version__ = "0.1.0"
__all__ = ["analyze"]


def _check_siblings() -> None:
    """Say clearly when a stranger's package of the same name shadows one of ours."""
    home = Path(__file__).resolve().parent.parent
    for name in ("traces", "heuristics", "reports"):
        spec = find_spec(name)
        where = Path(spec.origin).resolve().parent if spec and spec.origin else None
        if where != home / name:
            raise ImportError(
                f"moe-diag needs its own package {name!r}, but Python finds {where or 'none'}. "
                "Install moe-diag into an environment of its own (pipx install moe-diag), "
                f"or run it from a folder that has no {name}/."
            )


_check_siblings()


def analyze(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    selection: Selection | None = None,
    options: ReadOptions | None = None,
) -> Diagnosis:
    """Diagnose one trace, or several of one run.

    `paths` are `.nsys-rep`, `.qdrep` or SQLite exports; `selection` chooses steps, times or GPUs (default:
    all); `options` says which nsys exports reports and where exports are kept.

    Raises the errors of `traces.errors`: `UsageError` for the selection, `InputError` for the traces,
    `NothingToDiagnose` where neither kernels nor graph rows were recorded. A trace that cannot be used beside
    others that can becomes a warning of the document.
    """
    from diagnoser.pipeline import diagnose

    several = [paths] if isinstance(paths, str | PathLike) else list(paths)
    return diagnose([Path(path) for path in several], selection=selection, options=options)
