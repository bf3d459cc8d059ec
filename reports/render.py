"""Format name -> renderer. One line adds a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reports.csv_report import render_csv
from reports.document import Document
from reports.json_report import render_json
from reports.markdown import render_markdown
from reports.text import render_text

Renderer = Callable[[Document, bool], str]
"""Of a document, and whether to show every fix and refusal where a reader would be shown a few."""

RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": render_text,
    "markdown": render_markdown,
    "csv": render_csv,
    "json": lambda document, _: render_json(document),
}

EXTENSIONS: Final[Mapping[str, str]] = {"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}
"""File name extension of each format, for `-o .`."""
