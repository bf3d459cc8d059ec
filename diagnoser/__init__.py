"""The public API of moe-diag.

    import diagnoser diagnosis = diagnoser.analyze(["run.nsys-rep"], config="run.yaml",
    log="train.log") diagnosis.result # typed: diagnosis.result.verdict.wall,
    diagnosis.result.ranks[0].budget_ns.idle diagnosis.to_dict() # the JSON document, version 1.0
    diagnosis.to_frame() # pandas: one row per rank and bucket, kind or class

    checked = diagnoser.check_config("run.yaml", about={"core_version": "0.16.1"})
    checked.to_dict()["configuration"]["legal"]

    compared = diagnoser.compare("before.json", "after.nsys-rep", gate="3%")
    compared.to_dict()["verdict"], compared.to_frame(), compared.exit_code

    files = diagnoser.compare_files("before.yaml", "after.yaml", new_log="after.log")
    files.result.changed, files.result.explanations

Importing this package loads nothing; its functions are loaded as they are named.
"""

from diagnoser.working_folder import leave_working_folder

leave_working_folder(__path__[0].rpartition("/")[0])

# ruff: noqa: E402 - what follows may lie in the working folder too
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from diagnoser.version import VERSION

if TYPE_CHECKING:
    from diagnoser.api import (
        analyze,
        check_config,
        compare,
        compare_files,
        explain,
        load,
        merge,
        plan,
    )


__version__ = VERSION
__all__ = [
    "InputError",
    "MoeDiagError",
    "NothingToDiagnose",
    "UsageError",
    "analyze",
    "check_config",
    "compare",
    "compare_files",
    "explain",
    "load",
    "merge",
    "plan",
]

_BEGINS: Final = {"traces": b'"""FACTS', "heuristics": b'"""OPINIONS', "reports": b'"""WORDS'}
"""How the first file of each of our packages begins, by which it is known."""


def _check_siblings() -> None:
    """Say clearly when a stranger's package of the same name shadows one of ours, or lies over
    it.
    """
    home = Path(__file__).resolve().parent.parent
    own = "Install moe-diag into an environment of its own (pipx install moe-diag)"
    for name, begins in _BEGINS.items():
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        where = origin.parent if origin and origin.name == "__init__.py" else origin
        if not where or where != home / name:
            raise ImportError(
                f"moe-diag needs its own package {name!r}, but Python finds {where or 'none'}. "
                f"{own}, or start it where no {name}.py and no folder {name}/ is in the way."
            )
        if not (where / "__init__.py").read_bytes().startswith(begins):
            raise ImportError(
                f"another package {name!r} was installed over moe-diag's in {home}: "
                f"its __init__.py is not ours. {own}."
            )


_check_siblings()

from traces.errors import InputError, MoeDiagError, NothingToDiagnose, UsageError


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from diagnoser import api

    return getattr(api, name)
