"""`--title` and `--note` over pages and tickets, and the picture that a ticket's own page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from diagnoser.cli import run
from reports.content.page import Asked, Detail, Head
from reports.formats import FORMATS
from reports.result.codec import encode
from reports.result.json_text import render_json
from reports.result.read import kept_as_ours, typed
from reports.write.jira import Jira
from tests.doubles.comparison_document import document_of, regression
from tests.doubles.document import HOSTILE
from tests.read_back.jira_grammar import read

NAME = "new_compared_report"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return document_of(regression())


@pytest.fixture
def result(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "new_compared.json"
    path.write_text(render_json(document), encoding="utf-8")
    return path


def ticket(result: Path, *more: str, page: str = f"{NAME}.md") -> str:
    assert run(["report", str(result), "--ticket", str(result.parent / "t"), *more]) == 0
    return (result.parent / "t" / page).read_text(encoding="utf-8")


def images(markdown: str) -> list[str]:
    found = (one for block in MarkdownIt("commonmark").parse(markdown) for one in block.children or ())
    return [str(one.attrs["src"]) for one in found if one.type == "image"]


def test_the_page_of_a_ticket_shows_the_picture_that_lies_beside_it(result: Path) -> None:
    page = ticket(result)
    (shown,) = images(page)
    assert (result.parent / "t" / shown).read_bytes().startswith(b"\x89PNG")
    lines = page.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("!["))
    assert lines[place].startswith("![SLOWER +10 %, +4.00 ms per step: 95 % interval +3.50 to ")
    assert lines[place].endswith("20 steps a side.](new_compared_report.png)")
    assert lines.index(next(one for one in lines if one.startswith("**SLOWER**"))) < place
    assert place < next(number for number, line in enumerate(lines) if line.startswith("| Where"))


def test_jira_shows_it_as_wide_as_can_be_read(result: Path) -> None:
    page = ticket(result, "--flavor", "jira", page=f"{NAME}.jira.txt")
    assert "\n!new_compared_report.png|width=960!\n" in page
    assert read(page.replace("!new_compared_report.png|width=960!\n", ""))


@pytest.mark.parametrize("name", ["a b (1).png", "x](y)!|z.png", "\u4e2d%.png", "\udcff.png"])
def test_a_picture_of_any_name_is_found_by_github_and_no_mark_of_jira(
    document: dict[str, Any], name: str
) -> None:
    asked = Asked(head=Head(picture=name))
    (shown,) = images(str(FORMATS["markdown"].write(typed(document), asked)))
    assert unquote(shown, errors="surrogateescape") == name
    drawn = Jira().picture(name, "")
    assert (drawn == f"!{name}|width=960!") == (name in ("a b (1).png", "\u4e2d%.png"))
    assert drawn.startswith("!") or read(drawn)


def test_every_page_of_a_ticket_has_the_title_and_its_data_have_not(
    result: Path, document: dict[str, Any]
) -> None:
    page = ticket(result, "--title", "Slower since Monday", "--note", "after the upgrade")
    folder = result.parent / "t"
    html = (folder / f"{NAME}.html").read_text(encoding="utf-8")
    assert page.startswith("## Slower since Monday\n")
    assert "<h1>Slower since Monday</h1>" in html
    assert page.index("after the upgrade") < page.index("**SLOWER**")
    assert html.index("after the upgrade") < html.index('id="verdict"')
    data = json.loads((folder / f"{NAME}.json").read_text(encoding="utf-8"))
    assert data == encode(kept_as_ours(document))
    assert "Monday" not in (folder / f"{NAME}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["markdown", "jira", "html", "text"])
def test_what_a_user_writes_is_text_and_nothing_else(document: dict[str, Any], form: str) -> None:
    def written(text: str) -> str:
        return str(FORMATS[form].write(typed(document), Asked(Detail.FIRST, head=Head(text, (text,) * 2))))

    wild, calm = written(f"{HOSTILE} [x](http://y) !z! {{code}} # 1"), written("calm")
    assert not {"\u202e", "\x1b", "\r"} & {*wild}
    if form == "jira":
        assert len(read(wild)) == len(read(calm))
    elif form == "markdown":
        kinds = [[one.type for one in MarkdownIt("commonmark").parse(text)] for text in (wild, calm)]
        assert kinds[0] == kinds[1]
        assert images(wild) == []
    elif form == "html":
        assert wild.count("<script") == calm.count("<script")
        assert "<img" not in wild


PRIVATE = "/home/alice/run.sqlite at https://box.example/x, password: hunter2_sesame"


def test_paths_addresses_and_secrets_are_withheld_and_that_is_reported(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(result), "--note", PRIVATE, "--title", PRIVATE]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "run.sqlite at [address] password: [withheld]"
    assert "alice" not in out
    assert "hunter2" not in out
    assert err == (
        "moe-diag: 6 paths, addresses or secrets of --title and --note withheld; "
        "--no-redact shows all but secrets.\n"
    )


def test_a_result_that_is_not_redacted_shows_paths_and_still_no_secret(
    tmp_path: Path, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "open.json"
    path.write_text(render_json({**document, "redacted": False}), encoding="utf-8")
    assert run(["report", str(path), "--no-redact", "--note", PRIVATE]) == 0
    out, err = capsys.readouterr()
    assert "/home/alice/run.sqlite at https://box.example/x, password: [withheld]" in out
    assert err == "moe-diag: 1 path, address or secret of --title and --note withheld.\n"


@pytest.mark.parametrize(("more", "said"), [
    (("-f", "json", "--title", "x"), "--title is of pages and tickets."),
    (("-f", "json", "--note", "x"), "--note is of pages and tickets."),
    (("--note", "x" * 4097), "--title and --note may have 4,096 characters in all."),
])  # fmt: skip
def test_what_has_no_page_takes_no_title(
    result: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    assert run(["report", str(result), *more]) == 2
    assert said in capsys.readouterr().err
