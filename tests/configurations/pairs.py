"""Pairs of configurations and logs with a known cause, and sides made of a few lines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from heuristics.comparison.files.side import FileSide
from heuristics.config.about import Given
from heuristics.rules.rules import known_lines
from tests.configurations.logs import iteration
from tests.places import DATA
from traces.settings.read import configuration_of, read_configuration
from traces.training_log.read import read_log

PAIRS = sorted(one for one in (DATA / "config_pairs").iterdir() if one.is_dir())
SECOND_MS = 1000.0


def truth(pair: Path) -> dict[str, Any]:
    return tomllib.loads((pair / "truth.toml").read_text(encoding="utf-8"))


def config_of(pair: Path, side: str) -> Path:
    return next(one for one in pair.iterdir() if one.stem == side and one.suffix != ".log")


def sides(pair: Path, with_logs: bool = True) -> tuple[FileSide, FileSide]:
    given = Given(**truth(pair)["options"])
    base, new = (_side(pair, name, given, with_logs) for name in ("base", "new"))
    return base, new


def _side(pair: Path, name: str, given: Given, with_log: bool) -> FileSide:
    config, core = config_of(pair, name), FileSide("", given=given).run.config.core_text
    read = read_configuration(config, core)
    log = read_log(pair / f"{name}.log", known_lines()) if with_log else None
    return FileSide(config.name, config.name, read.settings, log, given, read.versions)


def said(text: str, name: str = "run.yaml", **about: Any) -> FileSide:
    """A side of a configuration alone."""
    return FileSide(name, name, configuration_of(text, name).settings, given=Given(**about))


def logged(
    tmp_path: Path, seconds: list[float], *more: str, name: str = "run.log", first: int = 1
) -> FileSide:
    """A side of a log alone, its first iteration the one of that number."""
    lines = [iteration(place, one * SECOND_MS, total=5000) for place, one in enumerate(seconds, first)]
    path = tmp_path / name
    path.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    return FileSide(name, log=read_log(path, known_lines()))
