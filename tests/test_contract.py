"""Our own check of documents says what a whole implementation of JSON Schema says."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

import diagnoser
from reports.contract import broken
from tests.compare_doubles import run_of

Json = dict[str, Any]
SCHEMAS = ("comparison_schema.json",)
WRONG: tuple[Any, ...] = (None, "x", -1, 3, 2.5, True, [], [None], {}, {"x": "y"})


def schema_of(name: str) -> Json:
    read: Json = json.loads(files("reports").joinpath(name).read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    trace = run_of(tmp_path_factory.mktemp("contract") / "run.sqlite")
    document = diagnoser.analyze(trace, ask_megatron=False).to_dict()
    return {"comparison_schema.json": diagnoser.compare(document, document).to_dict()}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of a document, of long lists the first two entries."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, one in entries:
        yield from places(one, (*path, key))


def changed(document: Json, path: tuple[str | int, ...], value: Any) -> Json:
    whole: Any = copy.deepcopy(document)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return whole  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_document_of_ours_keeps_the_contract(documents: dict[str, Json], name: str) -> None:
    assert broken(documents[name], name) is None


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_wrong_value_anywhere_is_found_as_a_whole_implementation_finds_it(
    documents: dict[str, Json], name: str
) -> None:
    whole = jsonschema.Draft202012Validator(schema_of(name))
    small = {
        key: value for key, value in documents[name].items() if key not in ("missing", "fixes", "refused")
    }
    small |= {
        key: documents[name][key][:1] for key in ("missing", "fixes", "refused") if key in documents[name]
    }
    found = 0
    for place, path in enumerate(places(small)):
        for value in (WRONG[place % len(WRONG)], WRONG[(place + 3) % len(WRONG)]):
            document = changed(small, path, value)
            says = broken(document, name)
            assert (says is None) == whole.is_valid(document), (path, value, says)
            found += says is not None
    assert found > 100


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_required_key_is_asked_for(documents: dict[str, Json], name: str) -> None:
    for key in schema_of(name)["required"]:
        without = {one: value for one, value in documents[name].items() if one != key}
        assert broken(without, name) == f"{key} is missing"


def test_only_words_of_json_schema_that_are_read_are_used() -> None:
    read = {"$ref", "type", "anyOf", "const", "enum", "minimum", "maximum", "exclusiveMinimum"}
    read |= {"exclusiveMaximum", "minItems", "maxItems", "prefixItems", "items", "properties", "required"}
    read |= {"additionalProperties", "propertyNames", "$defs", "$schema", "title", "description"}

    def words(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            yield from schema
            for key, value in schema.items():
                inner = value.values() if key in ("properties", "$defs") else [value]
                for one in inner:
                    yield from words(one)
        elif isinstance(schema, list):
            for one in schema:
                yield from words(one)

    assert {word for name in SCHEMAS for word in words(schema_of(name))} <= read
