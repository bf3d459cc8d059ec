"""The product's own source, read: its modules and what they import, and names that its code gives."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import heuristics.findings
import heuristics.walls
from heuristics.facts.dictionary import DICTIONARY, Fact
from heuristics.findings.contradictions import TABLE
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.walls.price import MEASURES
from heuristics.walls.verdict import FAMILIES
from tests.places import ROOT
from traces.account.pieces import DECIDED, REASONS
from traces.columns import COPY_KINDS
from traces.measure.moe.modules import MODULES as MOE_MODULES
from traces.measure.sm_launches import LIMITERS
from traces.names.kernels import COMM_KINDS, compute_classes


def all_facts() -> Mapping[str, Fact]:
    """The dictionary of facts with those of every module that states some."""
    for module in walk_packages(heuristics.__path__, "heuristics."):
        import_module(module.name)
    return DICTIONARY


DETECTORS = Path(heuristics.findings.__path__[0])


def finding_ids() -> set[str]:
    """Every id of a finding, of the table or the detectors' code; one that is put together ends in a dash."""
    code = (ast.parse(path.read_text(encoding="utf-8")) for path in DETECTORS.glob("*.py"))
    written = (node.value for tree in code for node in ast.walk(tree) if isinstance(node, ast.Constant))
    named = (one for one in (*TABLE, *written) if isinstance(one, str) and one.startswith("CFG-"))
    return {one.partition("{")[0] for one in named}


IN_LOOPS = (
    *("recompute_frac", "offload_exposed_frac", "host_resident_exposed_frac", "allocator_frac", "peak_frac"),
    *("allocator_retry_frac", "offload_bytes", "offload_gb_per_s"),
    *("host_resident", "host_resident_bytes", "host_resident_gb_per_s"),
)


def evidence_names() -> Iterator[str]:
    """Measures of the table, and the first argument of what makes others in the judges' code."""
    yield from MEASURES
    for path in Path(heuristics.walls.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("Evidence", "held") and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def words_of_the_code() -> list[str]:
    """Every word that a result can use for something measured, beside its keys."""
    words: list[str] = [
        *COMM_KINDS,
        *compute_classes(),
        *COPY_KINDS,
        *(reason.rpartition(".")[2] for reason in REASONS),
        *LIMITERS,
        *DECIDED,
        *IN_LOOPS,
        *FAMILIES,
        *MOE_MODULES,
        *evidence_names(),
    ]
    return words + [kind for fix in CATALOGUE.values() for kind in (*fix.kinds, *(fix.direct or ()))]


MAY_IMPORT = {
    "traces": {"traces"},
    "heuristics": {"heuristics", "traces"},
    "reports": {"reports", "heuristics", "traces"},
    "diagnoser": {"diagnoser", "reports", "heuristics", "traces"},
    "moe_diag": {"diagnoser", "traces"},
}
MODULES = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, modules: Collection[str] = ()) -> Iterator[str]:
    """What a file imports anywhere; of `modules` those that it names by their folder."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module or ""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
