"""Configurations with what megatron-core says of each, and the question to it."""

from __future__ import annotations

import dataclasses
import tomllib
from typing import Any

from heuristics.config.about import Given
from heuristics.rules.megatron.request import Request, request_of
from heuristics.run.run import Run
from tests.places import DATA
from traces.settings.settings import Value, settings

TABLE = tomllib.loads((DATA / "megatron_cases.toml").read_text("utf-8"))
CASES: list[dict[str, Any]] = TABLE["case"]


def knob(value: Any) -> Value:
    return tuple(value) if isinstance(value, list) else value


def request_for(case: dict[str, Any], te_version: str | None) -> Request:
    values = {**TABLE["base"], **case["changes"], **dict.fromkeys(case.get("unset", ()))}
    said = settings({name: knob(value) for name, value in values.items()}, "table")
    request = request_of(Run(given=Given(te_version=te_version), settings=said))
    assert isinstance(request, Request)
    if case["number"] == 87:  # no version has it, so a reader of configurations does not let it through
        request = dataclasses.replace(request, fields={**request.fields, **case["changes"]})
    return request
