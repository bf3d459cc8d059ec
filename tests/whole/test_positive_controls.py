"""What the frameworks' own people run is read whole, is legal, and no plan forbids it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from diagnoser.running.configuration import read_configured
from heuristics.config.about import Given
from heuristics.evidence.symptoms import Symptoms, observed_from
from heuristics.fixes.catalogue import fixes_of
from heuristics.judging.judgement import FilesRead, Judgement, judge_observed
from heuristics.plan.plan import make_plan
from heuristics.result.configured import BrokenRule
from heuristics.run.run import WALL_IDS
from tests.places import DATA
from traces.settings.effective import effective
from traces.settings.settings import FileProblem

LISTED: Final = DATA / "positive_controls.toml"
_CASES: Final = "tests/functional_tests/test_cases"
_SCHEDULES: Final = "tests/test_utils/recipes"
_FAMILIES: Final = ("moe", "mixtral", "gpt", "hybrid")
_NOT_TRAINING: Final = ("inference", "rl")
_CORE, _BRIDGE = "0.20.0", "0.7.0"
"""What their mains call themselves (package_info.py at d98e8a64 and 067f987d): later than every release."""
_NODE: Final = 8
"""GPUs of a node where a schedule does not name them."""
_RECIPE: Final = re.compile(r".+_(?P<ranks>\d+)gpu_(?P<gpu>[a-z]+\d+)_.+")


@dataclass(frozen=True, slots=True)
class Control:
    """A configuration of the frameworks: its name, its file, and what is known of its run.

    `ranks` is None for a test that is scheduled nowhere.
    """

    name: str
    path: Path
    ranks: int | None
    given: Given


def functional_tests() -> Iterator[Control]:
    """Megatron-LM's tests that train, by the checkout that MOE_DIAG_MEGATRON_LM names."""
    root = _folder("MOE_DIAG_MEGATRON_LM", "that Megatron-LM's own functional tests are read and legal")
    given, scheduled = Given(core_version=_CORE), _ranks_by_test(root)
    for family in _FAMILIES:
        for path in sorted((root / _CASES / family).glob("*/model_config.yaml")):
            held = yaml.safe_load(path.read_text(encoding="utf-8"))
            if held["MODEL_ARGS"] and held.get("MODE") not in _NOT_TRAINING:
                name = path.parent.name
                ranks = _own_ranks(held) or scheduled.get((family, name))
                yield Control(name, path, ranks, given)


def recipes() -> Iterator[Control]:
    """Bridge's performance recipes as its dump script writes them, in the folder MOE_DIAG_BRIDGE_RECIPES."""
    root = _folder("MOE_DIAG_BRIDGE_RECIPES", "that Bridge's performance recipes are read, legal and kept")
    for path in sorted(root.glob("*.yaml")):
        named = _RECIPE.fullmatch(path.stem)
        assert named, path.name
        given = Given(core_version=_CORE, bridge_version=_BRIDGE, gpu=named["gpu"].upper())
        name = path.stem.replace(
            "_fp8_", "_fp8"
        )  # the recipe's own spelling, where the dump script has fp8_mx
        yield Control(name, path, int(named["ranks"]), given)


def _folder(variable: str, shown: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} is unset: would have shown {shown}")
    return Path(folder)


def _ranks_by_test(root: Path) -> dict[tuple[str, str], int]:
    """Most ranks that each test is scheduled on, by model and name."""
    found: dict[tuple[str, str], int] = {}
    for path in sorted((root / _SCHEDULES).glob("*/*.yaml")):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        spec = held.get("spec", {})
        ranks = int(spec.get("nodes", 1)) * int(spec.get("gpus", _NODE))
        for name in (name for product in held.get("products", ()) for name in product["test_case"]):
            key = (str(spec.get("model")), name)
            found[key] = max(ranks, found.get(key, 0))
    return found


def _own_ranks(held: Mapping[str, Any]) -> int | None:
    """GPUs of a test's first run, where it says them itself."""
    ranks = held.get("MODEL_ENV_VARS", {}).get("MODEL_ARGS", {}).get("GPUS_PER_NODE")
    return None if ranks is None else int(ranks)


def configured(control: Control) -> FilesRead:
    """What its file says, and its number of ranks."""
    read = read_configured(control.path, None, control.given)
    if control.ranks is None:
        return read
    return replace(read, settings=read.settings.changed({"world_size": control.ranks}, "ranks"))


def judged(control: Control, read: FilesRead) -> Judgement:
    """What we make of it without any measurement."""
    return judge_observed(observed_from(Symptoms(), read.settings), control.given, read)


@cache
def rows() -> tuple[Mapping[str, Any], ...]:
    """Exceptions, as the table has them."""
    return tuple(tomllib.loads(LISTED.read_text(encoding="utf-8"))["exception"])


def listed(kind: str, seen: Collection[str]) -> set[tuple[str, str]]:
    """Exceptions of a kind among the configurations that were seen: (name, what is held against it)."""
    own = [row for row in rows() if row["kind"] == kind]
    return {(name, row["against"]) for row in own for name in row["configurations"] if name in seen}


FORBIDDEN = ("forbidden", "rejected")


def test_functional_tests_are_read_whole_and_legal() -> None:
    seen: set[str] = set()
    unread, illegal = set(), set()
    for control in functional_tests():
        seen.add(control.name)
        read = configured(control)
        unread |= {(control.name, _of(problem)) for problem in read.problems}
        illegal |= {(control.name, one.id) for one in _errors(judged(control, read))}
        assert len(read.settings.by_knob) > 10, control.name
    assert len(seen) > 200
    assert unread == listed("test-unread", seen)
    assert illegal == listed("test-illegal", seen)


def test_recipes_are_read_whole_legal_and_kept_by_every_plan() -> None:
    seen: set[str] = set()
    unread, illegal, forbidden = set(), set(), set()
    for control in recipes():
        seen.add(control.name)
        read = configured(control)
        unread |= {(control.name, _of(problem)) for problem in read.problems}
        found = judged(control, read)
        illegal |= {(control.name, one.id) for one in _errors(found)}
        forbidden |= {(control.name, fix) for fix in _forbidden_though_set(found)}
    assert len(seen) > 400
    assert unread == listed("recipe-unread", seen)
    assert illegal == listed("recipe-illegal", seen)
    assert forbidden == listed("recipe-forbidden", seen)


def _of(problem: FileProblem) -> str:
    """The name that a problem is about."""
    return problem.text.partition(" ")[0].rstrip(":")


def _errors(found: Judgement) -> Iterator[BrokenRule]:
    assert found.from_files is not None
    return (one for one in found.from_files.rules.broken if one.level == "error")


def _forbidden_though_set(found: Judgement) -> Iterator[str]:
    """Fixes that a plan of any one wall forbids, and whose every knob the configuration has so already."""
    run = found.run
    runs_as = effective(run.settings, run.given.core_version)
    for wall in WALL_IDS:
        for refused in make_plan(run, [wall], fixes_of(run.framework)).refused:
            changed = refused.fix.change(run).in_run(run)
            is_set = bool(changed) and all(runs_as.value(knob) == value for knob, value in changed.items())
            if is_set and refused.kind in FORBIDDEN and refused.fix.wall == wall:
                yield refused.fix.id
