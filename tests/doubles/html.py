"""A page taken apart, and documents with foreign names or as large as they may be, for the tests of pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from heuristics.result.result import Result
from reports.content.page import PLAIN, View
from reports.result.codec import Document, decode
from reports.write.html.page import write_analysis_html

HOSTILE = (
    'a|b`c`<script>alert(1)</script>"><img onerror=alert(2) src=x>\n{{ 7*7 }}{% raw %}'
    "\u202eturned\x1b[31m\ud800</title></style>--></script><!--"
) + "x" * 10_000
VOID = {"meta", "rect", "path", "circle", "link", "img", "br", "wbr", "input"}


def page_of(document: Document) -> str:
    """The page of a result's document."""
    return write_analysis_html(decode(document, Result), View(), PLAIN)


class Elements(HTMLParser):
    """Every element with its attributes, and whether all that opens closes in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.found if name in (attributes.get("class") or "").split()]

    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


def foreign(value: Any, name: str, key: str = "") -> Any:
    """The document with that name wherever a recording, a log or a configuration gives one."""
    if isinstance(value, dict):
        ours = ("tool",)
        return {one: inner if one in ours else foreign(inner, name, one) for one, inner in value.items()}
    if isinstance(value, list):
        return [foreign(inner, name, key) for inner in value]
    given_outside = {"name", "names", "what", "gpu", "reason", "diagnostics", "warnings", "text", "because"}
    return name if isinstance(value, str) and key in given_outside else value


def long(document: Document, steps: int, streams: int, count: int) -> Document:
    """The document as of so many steps, each drawn with so many activities on each of so many streams."""
    rank = document["ranks"][0]
    first = rank["steps"]["used"][0]
    rank["steps"]["used"] = [first | {"index": index} for index in range(steps)]
    for row in rank["ledger"]:
        row["per_step_ns"] = [row["work_ns"] // steps] * steps
    names = [f"kernel {n} " * 20 for n in range(500)]
    every = [_drawn(rank["timeline"], step, streams, count) for step in range(steps)]
    rank["timeline"] = every[0] | {"keys": rank["timeline"]["keys"], "names": names}
    rank["other_steps"] = [one | {"keys": [], "names": []} for one in every[1:]]
    return document


def _drawn(timeline: Document, step: int, streams: int, count: int) -> Document:
    at_ns = [1_000 * place for place in range(count)]
    columns = {"at_ns": at_ns, "length_ns": [900] * count, "key": [0] * count, "launch_ns": [5] * count}
    lane = columns | {"name": [place % 500 for place in range(count)]}
    reasons = {"at_ns": [one + 900 for one in at_ns], "length_ns": [100] * count, "reason": [0] * count}
    start_ns = timeline["start_ns"] + step * 1_000 * count
    return timeline | {
        "step": step,
        "start_ns": start_ns,
        "end_ns": start_ns + 1_000 * count,
        "lanes": [lane | {"stream": stream} for stream in range(7, 7 + streams)],
        "reasons": reasons | {"reasons": ["launch_latency.kernel_gap"]},
    }
