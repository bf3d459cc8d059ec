"""Format name -> renderer. One line adds a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reports.document import Document
from reports.json_report import render_json
from reports.text import render_text

RENDERERS: Final[Mapping[str, Callable[[Document], str]]] = {"text": render_text, "json": render_json}

EXTENSIONS: Final[Mapping[str, str]] = {"text": "txt", "json": "json"}
"""File name extension of each format, for `-o .`."""
