"""Writers that say their names in place of what they write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from heuristics.result.result import Merged, Result
from heuristics.result.tool import OfKind
from reports.content.page import Asked
from reports.formats import FORMATS, kind_of


def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every writer says its own name, so that no picture has to be drawn."""

    def named(form: str) -> Callable[[Result | OfKind | Merged, Asked], bytes]:
        return lambda result, asked: f"{kind_of(result).value} {form} {asked.detail.value}\n".encode()

    marked = {form: replace(one, write=named(form)) for form, one in FORMATS.items()}
    monkeypatch.setattr("diagnoser.output.results.FORMATS", marked)
