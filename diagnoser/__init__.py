"""The public API of moe-diag.

    import diagnoser
    diagnosis = diagnoser.analyze(["run.nsys-rep"])
    diagnosis.to_dict()     # the JSON document, version 1.0
    diagnosis.to_frame()    # pandas: one row per rank and bucket, kind or class

Importing this package loads neither numpy nor pandas; `analyze` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnoser.diagnosis import Diagnosis

__version__ = "0.1.0"
__all__ = ["InputError", "MoeDiagError", "NothingToDiagnose", "UsageError", "analyze"]


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

from traces.errors import InputError, MoeDiagError, NothingToDiagnose, UsageError  # noqa: E402 - after the check


def analyze(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    steps: str | None = None,
    nvtx: str | None = None,
    start: str | None = None,
    end: str | None = None,
    rank: int | None = None,
    gpu: int | None = None,
    nsys: str | None = None,
    cache_dir: str | PathLike[str] | None = None,
    about: Mapping[str, object] | None = None,
) -> Diagnosis:
    """Diagnose one trace, or several of one run.

    `paths` are `.nsys-rep`, `.qdrep`, SQLite exports, or `.json[.gz]` of the PyTorch profiler. `steps`
    ("2:5"), `nvtx` (a regular expression), `start` and `end` ("1.5s"), `rank` and `gpu` choose as the options
    of the command do; `nsys` is the program that exports reports, `cache_dir` where exports are kept. `about`
    says what the trace cannot tell of the run: {"gpu": "H100", "ep": 16, "core_version": "0.16.1"}; its keys
    are the fields of `heuristics.run.Given`.

    Raises `UsageError` for a selection that cannot be or matches nothing, `InputError` for the traces,
    `NothingToDiagnose` where neither kernels nor graph rows were recorded; all are `MoeDiagError`. A trace
    that cannot be used beside others that can becomes a warning of the document.
    """
    from diagnoser.about import given_from
    from diagnoser.pipeline import diagnose
    from traces.formats.open import ReadOptions
    from traces.steps.selection import parse_selection

    several = [paths] if isinstance(paths, str | PathLike) else list(paths)
    return diagnose(
        [Path(path) for path in several],
        selection=parse_selection(steps, nvtx, start, end, rank, gpu),
        options=ReadOptions(nsys, None if cache_dir is None else Path(cache_dir)),
        given=given_from(about or {}),
    )
