"""Documents against the schema that is shipped."""

from __future__ import annotations

from typing import Any

import jsonschema

from heuristics.result.result import Result
from reports.result.schema import schema

Json = dict[str, Any]


def validate(document: Json) -> None:
    """Raises for a document that does not keep the schema."""
    jsonschema.Draft202012Validator(schema(Result)).validate(document)
