"""Public threads whose cause is known: the command that their posters would give."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.configurations.constraints import read

ANSWERS: Final = read("field_cases/answers.toml")


def command(case: Path) -> list[str]:
    """As the thread's poster would ask."""
    config = next(path for path in (case / "config.yaml", case / "run.sh") if path.exists())
    options = [str(one) for one in ANSWERS[case.name]["options"]]  # type: ignore[attr-defined]
    for option, name in (("--log", "train.log"), ("--log", "train.log.gz"), ("--symptoms", "symptoms.json")):
        if (case / name).exists():
            options += [option, str(case / name)]
    return ["check-config", str(config), "--no-megatron", *options]
