"""Advice on recording speaks of the profiler that made the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reports.result.codec import Document
from traces.cures import cure, cures

OF_NSYS = re.compile(
    r"nsys (profile|export)|--(trace|cuda-(graph|event)-trace|cuda-memory|gpu-metrics)|export "
)


def advised(document: Document) -> Iterator[str]:
    """Every text that says what to record."""
    yield from (gap["cure"] for gap in document["missing"])
    yield from (wall["cure"] for wall in document["walls"])
    for fix in (*document["fixes"], *document["levers"]):
        yield from (need["cure"] for need in fix["preconditions"])


def of_nsys(document: dict[str, Any]) -> list[str]:
    return [text for text in advised(document) if OF_NSYS.search(text)]


def test_every_cure_has_a_form_for_each_recorder() -> None:
    assert cures("nsys-sqlite").keys() == cures("kineto").keys()
    assert not [text for text in cures("kineto").values() if OF_NSYS.search(text)]
    assert cure("graphs", None) == cure("graphs", "nsys-report") == "record with --cuda-graph-trace=node"
    assert cure("host_waits", "kineto").startswith("record with enable_cuda_sync_events")
