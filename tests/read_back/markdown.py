"""Markdown as GitHub reads it: what is ours alone, and what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = {"<code>", "</code>", "<span>", "</span>"}
BLOCK = re.compile(r"<details><summary>[^<>]*</summary>\n|</details>\n")


def pieces(text: str) -> Iterator[Any]:
    """What a reader of the page gets: every token, those within lines too."""
    for token in GITHUB.parse(text):
        yield token
        yield from token.children or ()


def shown(text: str) -> str:
    return "".join(one.content for one in pieces(text) if one.type in ("text", "fence"))


def is_ours_alone(text: str) -> bool:
    """No link, image, code in backticks or by indent, emphasis within foreign text, nor any tag but ours."""
    found = list(pieces(text))
    tags = {one.content for one in found if one.type == "html_inline"}
    blocks = "".join(one.content for one in found if one.type == "html_block")
    foreign = {
        "link_open", "image", "code_inline", "code_block", "em_open", "s_open", "hr", "blockquote_open",
    }  # fmt: skip
    return tags <= OURS and not BLOCK.sub("", blocks).strip() and not foreign & {one.type for one in found}


def open_lines(text: str) -> list[str]:
    """Lines with something on them that no fold holds."""
    found, depth = [], 0
    for line in text.splitlines():
        depth += line.startswith("<details>")
        if line and not depth:
            found.append(line)
        depth -= line == "</details>"
    assert depth == 0
    return found
