"""Format name -> renderer of a comparison. One line adds a format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reports.comparison.csv_report import render_comparison_csv
from reports.comparison.markdown import render_comparison_markdown
from reports.comparison.text import render_comparison_text
from reports.document import Document
from reports.json_report import render_json
from reports.render import Renderer


def _json(document: Document, everything: bool) -> str:
    return render_json(document)


COMPARISON_RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": render_comparison_text,
    "markdown": render_comparison_markdown,
    "csv": render_comparison_csv,
    "json": _json,
}
