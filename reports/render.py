"""Format name -> renderer. One line adds a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from reports.csv_report import render_csv
from reports.document import Document
from reports.emit import FRAMEWORKS, emit_config
from reports.json_report import render_json
from reports.markdown import render_markdown
from reports.text import render_text
from reports.text_check import render_check

Renderer = Callable[[Document, bool], str]
"""Of a document, and whether to show every fix and refusal where a reader would be shown a few."""


def _json(document: Document, everything: bool) -> str:
    return render_json(document)


_PATCHES: Final[Mapping[str, Renderer]] = {name: partial(emit_config, name) for name in FRAMEWORKS}

RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": render_text,
    "markdown": render_markdown,
    "csv": render_csv,
    "json": _json,
    **_PATCHES,
}

CHECK_RENDERERS: Final[Mapping[str, Renderer]] = {"text": render_check, "json": _json, **_PATCHES}
"""The same for a configuration that was judged without a trace."""

EXTENSIONS: Final[Mapping[str, str]] = {
    "text": "txt",
    "markdown": "md",
    "csv": "csv",
    "json": "json",
    "bridge": "yaml",
    "megatron-lm": "sh",
}
"""File name extension of each format, for `-o .`."""
