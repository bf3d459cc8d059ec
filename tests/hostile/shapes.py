"""What a hostile name can break in each format, as something that is the same for harmless names."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import yaml
from markdown_it import MarkdownIt

from tests.hostile.names import CONTROL, HARMFUL, RAN
from tests.hostile.secrets import laid_open

DATA = ("json", "perfetto")
"""Formats for programs, which keep a name as it is within their own quotes."""
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS_IN_MARKDOWN = {"<code>", "</code>", "<span>", "</span>"}
BLOCK = re.compile(r"</?details( open)?>|<summary>(?:[^<>]|</?span>)*</summary>")


def as_text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("utf-8")


class _Tags(HTMLParser):
    """Elements in order, each with the names of its attributes; addresses with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        places = [f"{name}={value}" for name, value in attrs if name in ("href", "src", "action", "style")]
        if tag == "wbr":  # where a long name may break
            return
        told = [name for name, _ in attrs if (tag, name) != ("code", "title")]  # where a long name is cut
        self.found.append((tag, *told, *(one for one in places if "#" not in one)))


def html_shape(text: str) -> list[tuple[str, ...]]:
    parser = _Tags()
    parser.feed(text)
    return parser.found


def markdown_shape(text: str) -> list[str]:
    tokens = [inner for token in GITHUB.parse(text) for inner in (token, *(token.children or ()))]
    inline = {one.content for one in tokens if one.type == "html_inline"}
    blocks = "".join(one.content for one in tokens if one.type == "html_block")
    assert inline <= OURS_IN_MARKDOWN
    assert not BLOCK.sub("", blocks).strip()
    assert not {"link_open", "image", "fence", "code_block", "hr", "s_open"} & {one.type for one in tokens}
    return [one.type for one in GITHUB.parse(text)]


def jira_shape(text: str) -> list[int]:
    """Cells of every row of every table; the only macro is one that shows its text as it is."""
    bare = re.sub(r"\\.", "", text)
    macros = re.findall(r"\{[a-z]+", re.sub(r"\{\{.*?\}\}", "", bare))
    assert set(macros) <= {"{noformat"}
    assert len(macros) % 2 == 0
    assert not re.search(r"(?<!\S)[!\[][^ ]+[!\]]", bare)
    cells, above = [], 0
    for line in bare.splitlines():
        if not line.startswith("|"):
            above = 0
            continue
        here = line.count("|") // (2 if line.startswith("||") else 1)
        assert line.endswith("|")
        assert above in (0, here), line
        above = here
        cells.append(here)
    return cells


def svg_shape(content: str) -> None:
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(content).iter()}
    assert not tags & {"script", "foreignObject", "image", "a", "animate", "set", "iframe"}


def json_shape(text: str) -> list[str]:
    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(part) for key, part in value.items()}
        if isinstance(value, list):
            return [shape(part) for part in value]
        return type(value).__name__

    text.encode("utf-8")
    return [json.dumps(shape(json.loads(text)))]


def shell_shape(text: str) -> list[str]:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, capture_output=True)
    return [line for line in text.splitlines() if not line.startswith("#")]


def patch_shape(text: str) -> object:
    return yaml.safe_load(text)


SHAPES: dict[str, Callable[[str], Any]] = {
    "html": html_shape, "markdown": markdown_shape, "jira": jira_shape, "svg": svg_shape, "json": json_shape,
    "perfetto": json_shape, "megatron-lm": shell_shape, "bridge": patch_shape,
}  # fmt: skip
"""What a name can break, as something that is the same for a document of harmless names."""


def assert_harmless(name: str, content: str | bytes) -> None:
    if name in ("png", "pdf"):
        assert isinstance(content, bytes)
        whole = laid_open(content)
        assert not re.search(rb"/(JavaScript|OpenAction|Launch|SubmitForm|EmbeddedFile|URI *\()", whole)
        assert RAN.encode() not in whole.replace(b" ", b"") or name == "pdf"
        return
    text = as_text(content)
    assert not (CONTROL if name in (*DATA, "svg") else HARMFUL) & set(text)
    text.encode("utf-8")
    if name in SHAPES:
        SHAPES[name](text)
