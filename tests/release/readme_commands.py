"""Every command that the README shows, each done in a folder of its own that holds what it names.

`python tests/release/readme_commands.py PROGRAM` needs no package: it tries a wheel in its own environment.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

README: Final = Path(__file__).resolve().parents[2] / "README.md"
_BLOCK: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINE: Final = re.compile(r"^(?:\$ )?moe-diag (.+)$", re.MULTILINE)
_BETWEEN: Final = re.compile(r"`moe-diag ([^`]* [^`]*|--[^`]+)`")
_COMMENT: Final = re.compile(r"\s#.*")

_CONFIG: Final = "model:\n  num_moe_experts: 8\n  expert_model_parallel_size: 8\n"
_LOG: Final = "".join(
    f" iteration {number:8}/      20 | elapsed time per iteration (ms): 41.{number:02} |\n"
    for number in range(1, 21)
)
_FILES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("run.yaml", "before.yaml", "after.yaml"), _CONFIG),
    **dict.fromkeys(("train.log", "after.log"), _LOG),
}
_FOLDERS: Final = ("ranks",)
_MADE: Final[Mapping[str, Sequence[str]]] = {
    "run.sqlite": ("demo --keep run.sqlite",),
    "run.json": ("demo -o run.json",),
    "before.sqlite": ("demo graphs --keep before.sqlite",),
    "before.json": ("demo graphs -o before.json",),
    "after.sqlite": ("demo graphs_lost --keep after.sqlite",),
    "after.json": ("demo graphs_lost -o after.json",),
    "ranks/": ("demo --keep ranks/0.sqlite", "demo --keep ranks/1.sqlite"),
    "kept": ("demo --keep kept.sqlite", "analyze kept.sqlite --summary kept"),
    "history": ("demo -o added.json", "history add added.json"),
}
"""What makes what a command names, by that word. The report stands for its export: `run.nsys-rep`."""
_GATE: Final = "--gate"
_TRIPPED: Final = 1
"""The exit code of a gate that did what it is for."""
_WITHOUT_TRACE: Final = "before.yaml"
_UNDECIDED: Final = 5
"""The exit code of a comparison of configurations, one of which has no log."""


def commands(text: str) -> list[str]:
    """What stands after `moe-diag` in a page, in blocks of code and between words, each once."""
    blocks = [line for block in _BLOCK.findall(text) for line in _LINE.findall(block)]
    between = _BETWEEN.findall(_BLOCK.sub("", text))
    return list(dict.fromkeys(_COMMENT.sub("", line).strip() for line in (*between, *blocks)))


def failures(program: Sequence[str], lines: Sequence[str], folder: Path) -> Iterator[str]:
    """Do each line in a folder below this one, and give what went wrong, one text a line that did."""
    made: dict[str, Path] = {}
    for place, line in enumerate(lines):
        words = shlex.split(line.replace(".nsys-rep", ".sqlite"))
        own = _folder(folder / str(place))
        for word in {*words} & {*_MADE}:
            if word not in made:
                made[word] = _folder(folder / f"made{len(made)}")
                wrong = [_wrong(program, shlex.split(one), made[word]) for one in _MADE[word]]
                yield from filter(None, wrong)
            shutil.copytree(made[word], own, dirs_exist_ok=True)
        if wrong_line := _wrong(program, words, own):
            yield wrong_line


def _folder(path: Path) -> Path:
    for name in _FOLDERS:
        (path / name).mkdir(parents=True)
    for name, text in _FILES.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def _wrong(program: Sequence[str], words: Sequence[str], folder: Path) -> str:
    done = _do([*program, *words], folder)
    ends = {0, *([_TRIPPED] if _GATE in words else ()), *([_UNDECIDED] if _WITHOUT_TRACE in words else ())}
    if done.returncode in ends and "Traceback" not in done.stderr:
        return ""
    said = (done.stderr.strip() or done.stdout.strip()).split("\n")[-1]
    return f"moe-diag {shlex.join(words)}: {done.returncode}, {said}"


def _do(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """With a home of its own, so that nothing of this user's helps and nothing is left."""
    own = {**os.environ, "HOME": str(folder), "SHELL": "/bin/bash", "MOE_DIAG_TRACEBACK": "1"}
    own = {name: value for name, value in own.items() if not name.startswith("XDG_")}
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)


def main(program: str) -> int:
    """Try them all; the exit code is how many failed."""
    lines = commands(README.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(failures([program], lines, Path(folder)))
    print("\n".join((*wrong, f"{len(lines) - len(wrong)} of {len(lines)} commands of the README work")))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
