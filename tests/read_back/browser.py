"""Debian's Chromium for the tests of pages: what a page says, asks for, shows and lets the keyboard reach.

A module has one for all its tests: the fixture `browser` of conftest.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-sync", "--disable-breakpad", "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
"""Nothing of its own accord, and no name resolves: what a page asks for fails, and is seen."""

_LOOKS = """
const looks = one => [one, ...Array.from(one.querySelectorAll('*')).slice(0, 4)].map(part => {
  const style = getComputedStyle(part);
  return [style.outlineStyle === 'none' ? 0 : style.outlineWidth, style.outlineColor, style.boxShadow,
    style.borderColor, style.borderWidth, style.backgroundColor, style.color, style.textDecoration,
    style.stroke, style.strokeWidth, style.fill, style.opacity].join(';');
}).join('|');
"""
_FOCUSED = f"""{_LOOKS}
const one = document.activeElement;
return [one, one === document.body || one === document.documentElement, looks(one), one.outerHTML];
"""
_UNFOCUSED = f"{_LOOKS} document.activeElement.blur(); return arguments[0].map(looks);"
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
         "ArrowRight": 39, "ArrowDown": 40, "+": 187, "-": 189, "0": 48}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stop:
    """An element the Tab key reached: its accessible name and role, and whether focus changes its looks."""

    name: str
    role: str
    html: str
    visible: bool


class Browser:
    """One headless Chromium. Its methods speak of the page last opened."""

    def __init__(self, driver: WebDriver, folder: Path) -> None:
        self.driver = driver
        self._folder = folder
        self._console: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def open(self, page: Path | str) -> None:
        """Open a file from `file://`; a text is written to one first. Console and requests begin anew."""
        if isinstance(page, str):
            path = self._folder / "page.html"
            path.write_text(page, encoding="utf-8", errors="surrogatepass")
            page = path
        self.driver.get("about:blank")
        self._read_logs()
        self._console, self._events = [], []
        self.driver.get(page.resolve().as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """What a script returns: `browser.run("return document.title")`."""
        return self.driver.execute_script(script, *arguments)

    def console(self) -> list[str]:
        """Every message since the page was opened: its own, exceptions, and what its policy refused."""
        self._read_logs()
        return [f"{one['level']}: {one['message']}" for one in self._console]

    def requests(self) -> list[str]:
        """Every address asked for since the page was opened, refused ones too, the page itself first."""
        self._read_logs()
        keys = {
            "Network.requestWillBeSent": lambda said: said["request"]["url"],
            "Network.webSocketCreated": lambda said: said["url"],
            "Page.frameRequestedNavigation": lambda said: said["url"],
        }
        return [keys[one["method"]](one["params"]) for one in self._events if one["method"] in keys]

    def look(self, width: int = 1280, height: int = 900, *, dark: bool = False, calm: bool = False) -> None:
        """Size of the window in CSS pixels, dark mode, reduced motion."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if calm else "no-preference",
        }
        as_list = [{"name": name, "value": value} for name, value in features.items()]
        self._ask("Emulation.setEmulatedMedia", media="screen", features=as_list)

    def press(self, key: str, *, shift: bool = False) -> None:
        """One key, by its DOM name: `Tab`, `Enter`, `Escape`, ` `, `ArrowLeft`, `+`."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        stroke: dict[str, object] = {"key": key, "windowsVirtualKeyCode": _KEYS[key], "modifiers": 8 * shift}
        self._ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **stroke)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **stroke)

    def tab_stops(self, limit: int = 300) -> list[Stop]:
        """What Tab reaches from the top of the page, in order, until it leaves the page.

        Fails where it does not leave within `limit` stops: the keyboard is trapped.
        """
        self.run("document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0)")
        found: list[WebElement] = []
        names, focused_styles, htmls = [], [], []
        for _ in range(limit):
            self.press("Tab")
            one, left, style, html = self.run(_FOCUSED)
            if left or (found and one == found[0]):
                break
            found.append(one)
            names.append((one.accessible_name, one.aria_role))
            focused_styles.append(style)
            htmls.append(html[:200])
        else:
            pytest.fail(f"Tab does not leave the page within {limit} stops; the last is {htmls[-1]}")
        blurred = self.run(_UNFOCUSED, found)
        return [
            Stop(name, role, html, focus != calm)
            for (name, role), html, focus, calm in zip(names, htmls, focused_styles, blurred, strict=True)
        ]

    def scrolls_sideways(self) -> int:
        """Pixels by which the page is wider than its window; 0 where nobody has to scroll sideways."""
        return int(self.run("const e = document.documentElement; return e.scrollWidth - e.clientWidth"))

    def _ask(self, command: str, **arguments: object) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def _read_logs(self) -> None:
        """Each log is emptied by reading it."""
        self._console += self._log("browser")
        self._events += [json.loads(one["message"])["message"] for one in self._log("performance")]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        return self.driver.execute("getLog", {"type": kind})["value"] or []


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with a fresh profile in `folder`. Skips where one of the three is missing."""
    shown = "would have shown that a page runs without errors, asks for nothing and serves the keyboard"
    webdriver = pytest.importorskip("selenium.webdriver", reason=f"no selenium: {shown}")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip(f"no chromium or chromedriver on PATH: {shown}")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        browser = Browser(driver, folder)
        browser.look()
        yield browser
    finally:
        driver.quit()
