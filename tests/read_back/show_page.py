"""The pictures of the page in `docs/page`, made again: `python -m tests.read_back.show_page`."""

from __future__ import annotations

import base64
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, write_ranks
from tests.places import ROOT
from tests.read_back.browser import Browser, started

SHOWN = ROOT / "docs" / "page"
_READY = """return new Promise(done => {
  const look = () => { if (document.body.dataset.ready) setTimeout(done, 300); else setTimeout(look, 20); };
  look();
})"""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: the window, what is clicked before it, and whether it is of several ranks."""

    name: str
    width: int
    height: int
    dark: bool = False
    clicked: str = ""
    of_ranks: bool = False


SHOTS = (
    Shot("first_screen", 1440, 900),
    Shot("first_screen_dark", 1280, 900, dark=True),
    Shot("timeline", 1440, 900, clicked="[data-wall=communication]"),
    Shot("phone", 390, 844),
    Shot("ranks", 1440, 900, clicked="#tab-panel-ranks", of_ranks=True),
)


def take(browser: Browser, page: Path, shot: Shot, folder: Path) -> Path:
    """The picture's file."""
    browser.look(shot.width, shot.height, dark=shot.dark, calm=True)
    browser.open(page)
    browser.run(_READY)
    if shot.clicked:
        browser.run(f"document.querySelector('{shot.clicked}').click()")
        browser.run(_READY)
    file = folder / f"{shot.name}.png"
    file.write_bytes(base64.b64decode(browser.driver.get_screenshot_as_base64()))
    return file


def show(folder: Path = SHOWN) -> None:
    """All pictures: of the page that `moe-diag demo` makes, and of eight ranks of which one is slow."""
    with TemporaryDirectory() as scratch, started(Path(scratch)) as browser:
        page, ranks = Path(scratch) / "demo.html", Path(scratch) / "ranks.html"
        subprocess.run([sys.executable, "-m", "diagnoser", "demo", "-o", str(page)], check=True)
        _write_ranks(Path(scratch), ranks)
        for shot in SHOTS:
            take(browser, ranks if shot.of_ranks else page, shot, folder)


def _write_ranks(folder: Path, page: Path) -> None:
    truth = draw_run(21, Cause.SLOW_DEVICE, step_count=12)
    written = write_ranks(truth.done, folder, draw_clocks(truth.run), Capture(mpi=True))
    paths = [str(one.path) for one in written]
    subprocess.run([sys.executable, "-m", "diagnoser", "analyze", *paths, "-o", str(page)], check=True)


if __name__ == "__main__":
    show()
