"""The JSON contract with a configuration, a log and symptoms in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

import diagnoser
from bench.simulate.export import write_export
from heuristics.result.result import Result
from reports.result.codec import Document
from reports.result.json_text import render_json
from tests.agreement.schema import schema
from tests.agreement.untold import nulls, unexplained
from tests.configurations.check import BRIDGE, CONTRADICTS, ILLEGAL, log, log_lines, script, symptoms, written
from tests.configurations.logs import crash, out_of_memory
from tests.doubles.document import DISPATCH, exposed

GIVEN = {"gpu": "H100", "core_version": "0.16.1"}
SECRET = "hunter2_sesame"


def check(path: Path, **how: object) -> Document:
    return diagnoser.check_config(path, about=GIVEN, ask_megatron=False, **how).to_dict()  # type: ignore[arg-type]


def trace(folder: Path, name: str = "run.sqlite") -> Path:
    path = folder / name
    write_export(path, exposed(comm=DISPATCH))
    return path


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Document]]:
    """Every kind of document that has a configuration, a log or symptoms in it; made in a secret's folder."""
    return [*made(tmp_path_factory.mktemp(SECRET))]


def made(folder: Path) -> Iterator[tuple[str, Document]]:
    good, said, judged = script(folder), log(folder, step_ms=10.0), symptoms(folder)
    short = written(folder, "short.log", log_lines()[0] + "\n")
    yield "good", check(good)
    yield "judged", check(good, symptoms=judged)
    yield "logged", check(good, log=said)
    yield "all", check(good, symptoms=judged, log=said)
    yield "short log", check(good, log=short)
    full = written(folder, "oom.log", "\n".join([*log_lines()[:9], *crash("forward", last=out_of_memory())]))
    yield "out of memory", check(good, log=full)
    yield "illegal", check(written(folder, "illegal.yaml", ILLEGAL), symptoms=judged)
    yield "contradicts", check(written(folder, "two.yaml", CONTRADICTS))
    yield "unknown names", check(written(folder, "odd.yaml", BRIDGE.replace("num_layers", "num_layerz")))
    yield "overrides", check(written(folder, "over.txt", "model.moe_grouped_gemm=true\n"))
    path, how = trace(folder), {"about": GIVEN, "ask_megatron": False}
    yield "trace", diagnoser.analyze(path, config=good, log=said, **how).to_dict()  # type: ignore[arg-type]
    yield "trace, log", diagnoser.analyze(path, log=said, ask_megatron=False).to_dict()
    yield "trace alone", diagnoser.analyze(path).to_dict()
    yield "no gpu", diagnoser.check_config(good, log=said, ask_megatron=False).to_dict()


def test_every_document_is_valid_plain_and_says_why_a_value_is_null(
    documents: list[tuple[str, Document]],
) -> None:
    count = 0
    for name, document in documents:
        jsonschema.Draft202012Validator(schema(Result)).validate(document)
        assert unexplained(document) == [], name
        assert json.loads(render_json(document)) == document, name
        count += len(nulls(document))
    assert count > 100
