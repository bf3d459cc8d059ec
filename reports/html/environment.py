"""A page of one file: the templates, their style and script inlined, and the policy that allows no other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from reports.html.colours import look
from reports.words import milliseconds, percent, printable, seconds

if TYPE_CHECKING:
    from jinja2 import Environment

_WIDTH: Final = 4_000
"""Longest text shown, in characters: sentences of ours are shorter, names of kernels are cut by `names`."""
_NAME: Final = 120

Content = Mapping[str, object]


def assemble(
    template: str,
    content: Content,
    scripts: Sequence[str] = ("page.js",),
    styles: Sequence[str] = ("page.css",),
) -> str:
    """The finished page: `template` of `templates/`, with the named scripts and styles of this folder.

    The template extends `base.html.j2`. The page may load nothing at all, and run and look only as these
    files say: its policy holds their hashes, so no inline handler, `style` attribute or other script
    takes effect.
    """
    from markupsafe import Markup

    style = "\n".join(map(_asset, styles))
    script = "\n".join(map(_asset, scripts))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template(template)
    said = page.render(content, policy=Markup(policy), style=Markup(style), script=Markup(script))
    return said.rstrip() + "\n"


def embedded(data: object) -> str:
    """Data as JSON that cannot end the `<script type="application/json">` around it; ASCII only."""
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def breakable(name: str) -> str:
    """A key that may break after its points and underscores, where a narrow page has no room for it."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[._])(?=[a-z])", printable(name, _WIDTH))
    return Markup("<wbr>").join(map(escape, parts))


def named(name: str) -> str:
    """A foreign name made harmless, cut in the middle to 120 characters."""
    return printable(name, _NAME)


def _asset(name: str) -> str:
    text = files("reports.html").joinpath(name).read_text(encoding="utf-8").strip()
    if "</s" in text.lower():
        raise ValueError(f"{name} would end its own element in the page")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _harmless(value: object) -> object:
    """Every text that a template prints, before it is escaped: no control characters, no turned reading.

    A number stays beside its percent sign.
    """
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, _WIDTH).replace(" %", "\u00a0%")
    return value


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {
        "breakable": breakable,
        "embedded": embedded,
        "look": look,
        "ms": milliseconds,
        "name": named,
        "percent": percent,
        "seconds": seconds,
    }
    environment.filters.update(filters)
    return environment
