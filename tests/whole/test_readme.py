"""The documentation cannot lie: outputs are made again, links lead somewhere, and paths exist.

`pytest --update-golden tests/whole/test_readme.py` writes today's outputs into the pages.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest

from diagnoser.cli import COMMANDS, run
from tests.configurations.check import BRIDGE, written
from tests.configurations.logs import iteration
from tests.places import ROOT

README: Final = ROOT / "README.md"
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHOWN: Final = (
    ("README.md", "demo"),
    ("docs/recording.md", "capture --for walls"),
    ("docs/recording.md", "doctor graphs.sqlite"),
    ("docs/compare.md", "compare graphs.sqlite graphs_lost.sqlite --gate 3%"),
)
"""Pages, and the command of which each shows the whole output in a block of code."""
ONE_PAGE: Final = 150
"""Lines of the README: the rest is a page of its own."""


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_an_output_that_is_shown_is_what_the_command_prints(
    page: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    for scenario in ("graphs", "graphs_lost"):
        if f"{scenario}.sqlite" in command:
            assert run(["demo", scenario, "--keep", f"{scenario}.sqlite"]) == 0
    capsys.readouterr()
    run(shlex.split(command))
    printed = capsys.readouterr().out
    path = ROOT / page
    before, block, after = around(path.read_text(encoding="utf-8"), f"$ moe-diag {command}\n")
    if request.config.getoption("--update-golden"):
        path.write_text(before + printed + after, encoding="utf-8")
        block = printed
    assert block == printed


def around(text: str, opening: str) -> tuple[str, str, str]:
    """A page up to what a block shows after its first line, what it shows, and the rest."""
    assert text.count(f"```\n{opening}") == 1
    start = text.index(f"```\n{opening}") + len(f"```\n{opening}")
    end = text.index("```\n", start)
    return text[:start], text[start:end], text[end:]


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= ONE_PAGE


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", outside_code(page.read_text(encoding="utf-8")))
    dead = [link for link in links if not re.match(r"https?://", link) and not leads(page, link)]
    assert dead == []


def leads(page: Path, link: str) -> bool:
    """Whether there is such a file, with such a heading where one is named."""
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not heading or heading in headings(target.read_text(encoding="utf-8"))


def headings(text: str) -> set[str]:
    """The headings of a page as GitHub spells them in links."""
    found = re.findall(r"^#+ (.+)$", outside_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


def outside_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_every_page_is_reached_from_the_readme() -> None:
    reached, open_ = {README}, [README]
    while open_:
        page = open_.pop()
        for link in re.findall(r"\]\(([^)#\s]+\.md)[)#]", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if target not in reached:
                reached.add(target)
                open_.append(target)
    assert {*PAGES} <= reached


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_path_of_ours_that_a_page_names_exists(page: Path) -> None:
    ours = r"`((?:traces|heuristics|reports|diagnoser|tests|docs)/[\w./*-]+)`"
    named = re.findall(ours, page.read_text(encoding="utf-8"))
    assert [path for path in named if not any(ROOT.glob(path.rstrip("/")))] == []


def test_every_command_line_of_the_readme_does_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, in a folder that has what they name. A recording is known by its content."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "history.sqlite"))
    for name, recording in (
        ("run.nsys-rep", "graphs"),
        ("run.sqlite", "graphs"),
        ("after.sqlite", "graphs_lost"),
    ):
        assert run(["demo", recording, "--keep", name, "-o", f"{name}.txt"]) == 0
    Path("ranks").mkdir()
    shutil.copy("run.sqlite", "ranks")
    for name in ("run", "before", "after"):
        written(tmp_path, f"{name}.yaml", BRIDGE)
    for name in ("train", "after"):
        written(tmp_path, f"{name}.log", "\n".join(iteration(index, 9.0) for index in range(1, 20)))
    assert run(["analyze", "run.sqlite", "--summary", "kept", "-o", "before.json"]) == 0
    shutil.copy("before.json", "run.json")
    assert run(["history", "add", "run.json"]) == 0
    (block,) = re.findall(
        r"^```\n(moe-diag .*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = re.findall(r"^moe-diag (.+?)(?: +#.*)?$", block, re.MULTILINE)
    ended = {line: run([*shlex.split(line.replace("DIR", "ticket")), *_forced(line)]) for line in lines}
    assert {*ended.values()} == {0, 1, 5}
    tripped = [line for line, code in ended.items() if code == 1]
    assert tripped == ["compare before.json after.sqlite --gate 3%"]
    shown = {line.split()[0] for line in lines}
    assert {*COMMANDS, "history"} - shown == {"open"}  # needs a person at a browser


def _forced(line: str) -> list[str]:
    """Two lines write the same page."""
    return ["--force-overwrite"] if " -o " in line else []


def test_what_make_does_in_the_readme_is_in_the_makefile() -> None:
    named = re.findall(r"^make (\w+)|`make ([\w-]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*map("".join, named)} <= {*made}
    assert ("demo", "") in named


def test_headlines_that_the_documentation_explains_are_printed() -> None:
    source = (ROOT / "reports" / "content" / "analysis" / "headline.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "first_diagnosis.md").read_text(encoding="utf-8")
    printed = {*re.findall(r'"([A-Z][A-Z0-9 %-]{8,})"', source)}
    assert len(printed) == 14
    assert printed <= {*re.findall(r"^\| `([A-Z0-9 %-]+)` \|", page, re.MULTILINE)}
