"""The list of what the code says is of today's code, and every text of a document says who wrote it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest
from msgspec import Struct, inspect

from heuristics.result.compared import Compared
from heuristics.result.compared_files import ComparedFiles
from heuristics.result.layouts import Layouts
from heuristics.result.result import Merged, Result
from reports.result.voice.book import Book, Reading, book
from reports.result.voice.phrases import GAP
from tests.places import ROOT, Reviewed
from traces.texts import EXTRA

_ROOMS: Final = ("traces", "heuristics", "reports/result", "diagnoser/running", "diagnoser/commands")
"""Where texts of documents are made."""
_SENTENCE: Final = re.compile(r"[A-Za-z]{2}.* |.* [A-Za-z]{2}")
_GAP: Final = "{}"


def said_in_code() -> list[str]:
    """Every text of the code that reads as words, in order; `{}` stands for what is filled in."""
    found = {
        text
        for room in _ROOMS
        for path in (ROOT / room).rglob("*.py")
        for text in _texts(ast.parse(path.read_text(encoding="utf-8")))
    }
    return sorted(text for text in found if _is_sentence(text))


def _is_sentence(text: str) -> bool:
    return text.isprintable() and _SENTENCE.search(text) is not None and "\\" not in text


def _texts(node: ast.AST) -> Iterator[str]:
    """Texts and texts with gaps; no docstring."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(_piece(part) for part in node.values)
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from _texts(child)


def _piece(part: ast.expr) -> str:
    is_text = isinstance(part, ast.Constant) and isinstance(part.value, str)
    return part.value if is_text else _GAP  # type: ignore[attr-defined]


LISTED = ROOT / "reports" / "result" / "voice" / "said_in_code.txt"
PUMPED = (
    "a", "a ", "a, ", "; ", " and ", "--a ", "x_", "(", " (", "0 ", "model.", "a=", '"', "takes ", "of ",
)  # fmt: skip


def test_the_list_is_of_the_code_as_it_is(reviewed: Reviewed) -> None:
    made = "".join(f"{line}\n" for line in said_in_code())
    assert made == reviewed(LISTED, made)


def bare_texts(kind: inspect.Type, place: str, seen: set[type]) -> Iterator[str]:
    """Fields of a document whose texts have no kind; there are to be none."""
    match kind:
        case inspect.Metadata(extra=extra) if extra and EXTRA in extra:
            return
        case inspect.StrType(pattern=None) | inspect.AnyType():
            yield place
        case inspect.StructType(cls=cls) | inspect.DataclassType(cls=cls) if cls not in seen:
            seen.add(cls)
            for field in kind.fields:
                yield from bare_texts(field.type, f"{cls.__name__}.{field.name}", seen)
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            for one in types:
                yield from bare_texts(one, place, seen)
        case (
            inspect.Metadata(type=item)
            | inspect.VarTupleType(item_type=item)
            | inspect.ListType(item_type=item)
        ):
            yield from bare_texts(item, place, seen)
        case inspect.DictType(key_type=key, value_type=value):
            for one in (key, value):
                yield from bare_texts(one, place, seen)


@pytest.mark.parametrize("kind", [Result, Compared, ComparedFiles, Layouts, Merged])
def test_every_text_of_a_document_says_who_wrote_it(kind: type[Struct]) -> None:
    assert [*bare_texts(inspect.type_info(kind), kind.__name__, set())] == []


def test_a_bare_text_is_noticed() -> None:
    class Bare(Struct):
        name: str
        more: dict[str, tuple[str, ...]] = {}

    assert [*bare_texts(inspect.type_info(Bare), "", set())] == ["Bare.name", "Bare.more", "Bare.more"]


def test_a_sentence_is_known_with_other_figures_and_with_nothing_else() -> None:
    said = Reading(Book([f"the step takes {GAP} in place of {GAP}", "out of memory", f"{GAP} and {GAP}"]), ())
    assert said.says("the step takes 12 ms in place of 10 ms")
    assert said.says("the step takes the memory in place of 10 ms; out of memory")
    assert not said.says("the step takes my money in place of 10 ms")
    assert not said.says("the step takes 12 ms in place of 10 ms, run $(reboot)")
    assert not said.says("memory and the step")
    assert not said.says("The step is fine")


@pytest.mark.parametrize("pump", PUMPED)
def test_no_text_costs_more_than_its_length(pump: str) -> None:
    from time import process_time

    def seconds(length: int) -> float:
        text = (pump * length)[:length] + "!"
        begun = process_time()
        Reading(book(), ()).says(text)
        book().types(text)
        return process_time() - begun

    seconds(10)
    assert seconds(2_900) < 1.0
    assert seconds(200_000) < 1.0
