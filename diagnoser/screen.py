"""How much room there is to print: the terminal's width and colours; 80 plain columns where it is piped."""

import os
import shutil
import sys

from reports.content.blocks import View

_NARROW, _WIDE = 40, 200


def screen() -> View:
    """The view of standard output. `NO_COLOR` and `TERM=dumb` are kept to."""
    if not sys.stdout.isatty():
        return View()
    width = max(_NARROW, min(shutil.get_terminal_size().columns, _WIDE))
    return View(width, colour="NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb")
