"""The pictures of the page in `docs/page`, made again: `python -m tests.show_page`."""

from __future__ import annotations

import base64
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import Browser, started
from tests.places import ROOT

SHOWN = ROOT / "docs" / "page"
_READY = """return new Promise(done => {
  const look = () => { if (document.body.dataset.ready) setTimeout(done, 300); else setTimeout(look, 20); };
  look();
})"""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: the window, and what is clicked before it."""

    name: str
    width: int
    height: int
    dark: bool = False
    clicked: str = ""


SHOTS = (
    Shot("first_screen", 1440, 900),
    Shot("first_screen_dark", 1280, 900, dark=True),
    Shot("timeline", 1440, 900, clicked="[data-wall=communication]"),
    Shot("phone", 390, 844),
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
    """All pictures, of the page that `moe-diag demo` makes."""
    with TemporaryDirectory() as scratch, started(Path(scratch)) as browser:
        page = Path(scratch) / "demo.html"
        subprocess.run([sys.executable, "-m", "diagnoser", "demo", "-o", str(page)], check=True)
        for shot in SHOTS:
            take(browser, page, shot, folder)


if __name__ == "__main__":
    show()
