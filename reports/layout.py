"""Lines of the plain text: 80 columns, a title column on the left."""

from __future__ import annotations

import textwrap
from typing import Final

WIDTH: Final = 80
INDENT: Final = " " * 9


def titled(title: str, text: str) -> list[str]:
    """Wrapped text with a title in the first line's margin."""
    hanging = "  " if text.startswith("- ") else "   " if text[:1].isdigit() and text[1:3] == ". " else ""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{title:<9}",
        subsequent_indent=INDENT + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap(text: str, indent: str = INDENT, hanging: str | None = None) -> list[str]:
    """Wrapped text; `hanging` indents what follows the first line."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
