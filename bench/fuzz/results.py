"""Documents of earlier results with any place spoiled: refused, or rendered and compared."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import diagnoser
from bench.fuzz.mutations import tree
from bench.fuzz.target import Target
from bench.simulate.export import write_export
from diagnoser.commands.results import _DAMAGE
from diagnoser.output.results import saved_result
from reports.content.page import Asked, Detail
from reports.formats import FORMATS
from reports.result.codec import Document
from tests.doubles.comparison_document import document_of, regression
from tests.doubles.document import DISPATCH, exposed
from traces.errors import MoeDiagError

_KEPT: Final = 2


@cache
def seeds() -> tuple[Document, ...]:
    """Documents whose lists are cut down."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, exposed(comm=DISPATCH))
        analysis = diagnoser.analyze(path, ask_megatron=False).to_dict()
    return tuple(map(_few, (analysis, document_of(regression()))))


def _few(one: Any) -> Any:
    if isinstance(one, dict):
        return {key: _few(part) for key, part in one.items()}
    return [_few(part) for part in one[:_KEPT]] if isinstance(one, list) and _is_cut(one) else one


def _is_cut(one: list[Any]) -> bool:
    """Columns of a table are to be of one length."""
    return all(isinstance(part, dict) for part in one)


def begin(rng: Random) -> Any:
    """A whole document."""
    return rng.choice(seeds())


def spoil(rng: Random, document: Any) -> Any:
    """One place of it changed."""
    return tree(rng, document)


def written(rng: Random, document: Any) -> tuple[str, bytes]:
    """The text, one in ten packed."""
    content = json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return (
        ("run.json.gz", gzip.compress(content, 1, mtime=0)) if rng.random() < 0.1 else ("run.json", content)
    )


def check(path: Path, deep: bool) -> None:
    """It is read; the whole way it is rendered, where `report` names what it lacks, and compared."""
    saved = saved_result(path, redact=True)
    if deep:
        for form in ("text", "markdown", "json"):
            with suppress(*_DAMAGE):
                FORMATS[form].write(saved, Asked(Detail.FULL))
        for sides in ((path, seeds()[0]), (seeds()[0], path)):
            with suppress(MoeDiagError):
                diagnoser.compare(*sides).to_dict()


TARGET: Final = Target("results", begin, spoil, written, check, deep=10)
