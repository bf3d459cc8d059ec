"""What a reader of each format gets as text, for the walk over its numbers; no marks, styles or programs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from typing import Any, Final
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from reports.formats import FORMATS

_GITHUB: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_UNSEEN: Final = ("script", "style", "template")
_INLINE: Final = ("code", "kbd", "b", "strong", "em", "i", "a", "wbr", "abbr", "mark", "small", "bdi")
_SAID: Final = ("title", "aria-label", "alt", "placeholder")
"""Attributes that are shown or read aloud."""
_SVG: Final = "{http://www.w3.org/2000/svg}"
_SCALE: Final = re.compile(r"[xy]tick_\d+")
"""Matplotlib's groups for the marks of a scale, which are no figures."""


def of_html(text: str) -> str:
    """Text and what is read aloud, each block on a line of its own."""
    parser = _Html()
    parser.feed(text)
    parser.close()
    return "".join(parser.said)


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self.said += [f"\n{value}\n" for name, value in attrs if name in _SAID and value]
        self.said.append("" if tag in _INLINE else "\n")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN
        self.said.append("" if tag in _INLINE else "\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.said.append(data)


def of_markdown(text: str) -> str:
    """As GitHub shows it, cells of tables apart."""
    return of_html(re.sub(r"</?span>", "", _GITHUB.render(text)))


def of_jira(text: str) -> str:
    """Without the marks of Jira's wiki: macros, cells, emphasis, escapes."""
    shown = re.sub(r"\\(.)", r"\1", re.sub(r"\{(?:code|noformat|panel|expand)[^}]*\}", "\n", text))
    entities = re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), shown)
    return re.sub(r"\{\{|\}\}|^h\d\. |^[*#-]+ |\|+|(?<!\w)\*|\*(?!\w)", " ", entities, flags=re.MULTILINE)


def of_patch(text: str) -> str:
    """A configuration; its comments may be sentences that were wrapped."""
    return re.sub(r"^\s*# ?", "", text, flags=re.MULTILINE)


def of_svg(text: str) -> str:
    """Its letters: of `text`, and of the comments in which matplotlib says what it draws; no scales."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(text, parser=parser)  # our own output
    return "\n".join(_letters(root))


def _letters(element: ElementTree.Element) -> Iterator[str]:
    if _SCALE.fullmatch(element.get("id", "")) or element.tag in (f"{_SVG}metadata", f"{_SVG}style"):
        return
    if not isinstance(element.tag, str) or element.tag in (f"{_SVG}text", f"{_SVG}title", f"{_SVG}desc"):
        yield html.unescape("".join(element.itertext()))
        return
    for child in element:
        yield from _letters(child)


def of_perfetto(text: str) -> str:
    """Names and arguments, counters in ms; when things ran is what the trace's own tests read."""
    value = json.loads(text)
    said = [*_told(value["otherData"], "")]
    for event in value["traceEvents"]:
        said.append(event["name"])
        if event["ph"] != "M":
            said += [*_told(event.get("args", {}), " ms" if event["ph"] == "C" else "")]
        elif "name" in event["args"]:
            said.append(event["args"]["name"])
    return "\n".join(dict.fromkeys(said))


def _told(value: Any, unit: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _told(part, unit)
    elif isinstance(value, list):
        for part in value:
            yield from _told(part, unit)
    else:
        yield f"{value}{unit}"


def visible(form: str, written: str) -> str:
    """What a reader of a format gets; of one without marks of its own all that is written."""
    return _READERS.get(form, str)(written)


_READERS: Final[Mapping[str, Callable[[str], str]]] = {
    "markdown": of_markdown,
    "jira": of_jira,
    "html": of_html,
    "svg": of_svg,
    "perfetto": of_perfetto,
    "bridge": of_patch,
    "megatron-lm": of_patch,
    "json": lambda text: "",
}
"""Format with marks -> what is read of it. JSON is the document itself."""
UNREAD: Final = tuple(form for form, one in FORMATS.items() if one.binary)
"""Without text to read: the SVG of the same drawing is read in their place."""
