"""Pages that are made: of every word that `explain` knows, and of the published schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from reports.content.blocks import Part
from reports.content.explain.page import explain_page, explained
from reports.content.page import View
from reports.write.github import GitHub
from reports.write.markup import Writer
from tests.places import ROOT

SHORT: Final = "---\ntocdepth: 2\n---\n\n"
"""Before a page of many words: beside it stand their names alone."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A page of words. `kinds`: how the kinds of its words begin, as `explain` prints them."""

    title: str
    kinds: tuple[str, ...]
    about: str

    def names(self) -> list[str]:
        """Each word once, in the order of `moe-diag explain`."""
        lists = (names for kind, names in explained().items() if kind.startswith(self.kinds))
        return [*dict.fromkeys(name for names in lists for name in names)]

    def write(self) -> str:
        """What `moe-diag explain` prints of each word."""
        return f"{SHORT}# {self.title}\n\n{self.about}\n\n" + "\n".join(map(entry, self.names()))


WORDS: Final[Mapping[str, Explained]] = {
    "walls": Explained("Walls", ("wall",), "The four kinds of overhead, how each is told, and its limits."),
    "fixes": Explained("Fixes", ("fix",), "Every change that can be recommended."),
    "rules": Explained("Rules of releases", ("rule of a release",), "What makes a configuration illegal."),
    "workflow": Explained(
        "Rules of the workflow", ("rule of the workflow",), "What NVIDIA's workflow asks for, and no release."
    ),
    "guides": Explained(
        "Rules of the guides", ("table of the guide", "rule of the guide"), "What NVIDIA's guides choose by."
    ),
    "findings": Explained(
        "Findings", ("finding of a configuration",), "Where configuration, log and trace disagree."
    ),
    "failures": Explained(
        "Failures, incidents and corrections",
        ("failure that a log shows", "incident", "correction"),
        "What lines of a training log mean, and what corrects it.",
    ),
    "changes": Explained(
        "Known changes", ("known change",), "What one change of a configuration did to a step elsewhere."
    ),
    "settings": Explained("Settings", ("setting",), "Spellings of each setting, and the rules that read it."),
    "words": Explained(
        "Words of a result",
        (
            "word of the field",
            "word of the first screen",
            "word of a result",
            "reason why a verdict is not surer",
        ),
        "`moe-diag explain WORD` prints the meaning of every id, name and key. These are the words that are "
        "none of the others; the pages beside this one have the rest.",
    ),
}
SCHEMAS: Final = tuple(sorted((ROOT / "docs").glob("*.schema.json")))
"""As published; a test holds them against the types of the documents."""


def made() -> dict[str, Callable[[], str]]:
    """Path on the site of every page that is made -> what makes its text."""
    of_words = {f"reference/{name}.md": page.write for name, page in WORDS.items()}
    of_keys = {f"reference/{document(file)}_keys.md": partial(keys, file) for file in SCHEMAS}
    return of_words | of_keys


def document(schema: Path) -> str:
    """The name of the document that a schema describes."""
    return schema.name.removesuffix(".schema.json")


def keys(file: Path) -> str:
    """Every key of a document: a table for each section, the whole document first."""
    published = json.loads(file.read_text(encoding="utf-8"))
    sections: dict[str, Any] = published["$defs"]
    whole = published["$ref"].rpartition("/")[2]
    order = [whole, *(name for name in sections if name != whole)]
    head = (
        f"# {document(file).replace('_', ' ').capitalize()}: every key\n\n"
        f"Every key of the document that [{file.name}](../docs/{file.name}) describes."
    )
    return "\n\n".join([head, *(_section(name, sections[name]) for name in order)]) + "\n"


class SiteMarkup(GitHub):
    """Names between backticks, which stay readable in headings and in the search; the texts are our own."""

    def code(self, text: str, width: int = 0) -> str:
        """Between more backticks than the text has in a row."""
        return f"`` {text} ``" if "`" in text else f"`{text}`"


def entry(name: str) -> str:
    """What `moe-diag explain NAME` prints, as a section; where its one heading is its kind, the kind once."""
    page = explain_page(name)
    match page.blocks:
        case [Part(title, blocks)] if page.facts == (title,):
            page = replace(page, blocks=blocks)
    return Writer(page, View(), SiteMarkup()).write()


def _section(name: str, made: dict[str, Any]) -> str:
    lines = [f"## {name}", "", _plain(made.get("description", "")), ""]
    if "enum" in made:
        lines.append(f"One of {_type(made)}.")
    if "properties" in made:
        required = made.get("required", ())
        lines += ["| Key | Type | Meaning |", "| :-- | :-- | :-- |"]
        lines += (" ".join(_row(key, one, key in required)) for key, one in made["properties"].items())
    return "\n".join(lines)


def _row(key: str, one: dict[str, Any], required: bool) -> Iterator[str]:
    absent = "" if required else ", may be absent"
    yield f"| `{key}` | {_type(one)}{absent} | {_plain(one.get('description', ''))} |"


def _type(one: dict[str, Any]) -> str:
    """A type in words, with a link to the section where it has one."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in one:
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in one["enum"])
    if "anyOf" in one:
        return " or ".join(map(_type, one["anyOf"]))
    if one.get("type") == "array":
        inside = one.get("items") or {"anyOf": one.get("prefixItems", [])}
        return f"list of {_type(inside)}" if inside else "list"
    if isinstance(one.get("additionalProperties"), dict):
        return f"object: any key to {_type(one['additionalProperties'])}"
    return str(one.get("type", "any"))


def _plain(text: str) -> str:
    """A description on one line; names between backticks stay names."""
    pieces = " ".join(text.split()).split("`")
    marks = (SiteMarkup().plain, SiteMarkup().code)
    return "".join(marks[place % 2](piece) for place, piece in enumerate(pieces))
