"""The site as it is built: strict, whole, and nothing of it fetched from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.places import ROOT
from tests.read_back.browser import Browser
from tests.site.__main__ import main
from tests.site.build import FRONT, build, navigation

TOOLS: Final = ("sphinx", "myst_parser", "furo")
_FETCHING: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements that ask for something as a page opens, and where."""
_FOUND: Final = """return new Promise(done => {
  const all = () => [...document.querySelectorAll('#search-results a')];
  const look = () => all().some(one => one.innerText === arguments[0]) ? done(true) : setTimeout(look, 50);
  look();
})"""
"""Waits until the search, which lists one page after the other, has a page of this title."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_tools()
    folder = tmp_path_factory.mktemp("site") / "site"
    assert main(folder) == 0
    return folder


def need_tools() -> None:
    if missing := [name for name in TOOLS if find_spec(name) is None]:
        pytest.skip(
            f"no {', '.join(missing)} (extra [docs]): would have shown that the site builds and is whole"
        )


def test_a_broken_link_and_a_page_without_a_place_fail_the_build(tmp_path: Path) -> None:
    need_tools()
    staged = tmp_path / "staged"
    staged.mkdir()
    (staged / "lost.md").write_text("# Nobody leads here\n", encoding="utf-8")
    (staged / "index.md").write_text("# First\n\n[gone](gone.md) [place](#not-there)\n", encoding="utf-8")
    run = build(staged, tmp_path / "site")
    assert run.returncode != 0
    assert run.stderr.count("WARNING") == 3
    assert all(word in run.stderr for word in ("'gone.md'", "'not-there'", "lost.md"))


def test_a_folder_that_is_no_site_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
    assert main(tmp_path) == 1
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "kept"


def test_the_site_has_every_page_and_a_readable_first_one(site: Path) -> None:
    for page in (path for section in navigation() for path in section.pages):
        assert (site / page).with_suffix(".html").is_file(), page
    first = (site / "index.html").read_text(encoding="utf-8")
    assert (ROOT / FRONT).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") in first
    places = [first.index(f'caption-text">{section.title}<') for section in navigation()]
    assert places == sorted(places)


def test_no_page_asks_for_anything_of_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert [*Fetched.of(page)] != []
        assert [one for one in Fetched.of(page) if re.match(r"(https?:)?//", one)] == [], page
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(https?:)?//", text), sheet


class Fetched(HTMLParser):
    """What a page asks for as it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def of(cls, page: Path) -> Iterator[str]:
        """The addresses in a file."""
        parser = cls()
        parser.feed(page.read_text(encoding="utf-8"))
        yield from parser.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element that fetches."""
        self.found += [value for name, value in attrs if value and name == _FETCHING.get(tag)]


def test_pages_open_from_a_folder_and_the_search_finds_a_page(site: Path, browser: Browser) -> None:
    browser.open(site / "reference" / "fixes.html")
    assert "COM-2" in str(browser.run("return document.body.innerText"))
    assert {address.partition(":")[0] for address in browser.requests()} <= {"file", "data"}
    browser.driver.get(f"{(site / 'search.html').as_uri()}?q=dispatcher")
    assert browser.run(_FOUND, "Fixes")
