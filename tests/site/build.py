"""Pages put together in one folder, and Sphinx run over them, offline; a broken link ends it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.places import ROOT
from tests.site.reference import made

HERE: Final = Path(__file__).resolve().parent
FRONT: Final = "README.md"
"""The page that a reader sees first; the others are under it."""


@dataclass(frozen=True, slots=True)
class Section:
    """Pages under one title, each a path in the repository or of a page that is made, or `Title <path>`."""

    title: str
    entries: tuple[str, ...]

    @property
    def pages(self) -> tuple[str, ...]:
        """The paths alone."""
        return tuple(one.rpartition("<")[2].removesuffix(">") for one in self.entries)


def navigation() -> tuple[Section, ...]:
    """The sections in their order."""
    read = tomllib.loads((HERE / "navigation.toml").read_text(encoding="utf-8"))
    return tuple(Section(one["title"], tuple(one["pages"])) for one in read["section"])


def written() -> list[str]:
    """Paths of the pages that people write, but the first."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in pages if page != ROOT / FRONT)


def stage(folder: Path) -> None:
    """Everything that the site is made of, under the paths it has in the repository."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    for path, make in made().items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(make(), encoding="utf-8")
    for page in (folder / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(f"](../{FRONT})", "](../index.md)"), encoding="utf-8")
    front = (folder / FRONT).rename(folder / "index.md")
    with front.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for section in navigation() for line in _tree(section))


def build(staged: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Sphinx's run. Each of its warnings is an error: a dead link or picture, a page without a place."""
    strict = ["--fail-on-warning", "--nitpicky", "--quiet", "--builder", "html"]
    line = [sys.executable, "-m", "sphinx", *strict, "--conf-dir", str(HERE)]
    kept = ["--doctree-dir", str(staged.parent / "doctrees")]
    return subprocess.run([*line, *kept, str(staged), str(site)], capture_output=True, text=True)


def _tree(section: Section) -> Iterator[str]:
    yield from ("", "```{toctree}", ":hidden:", f":caption: {section.title}", "")
    yield from section.entries
    yield "```"
