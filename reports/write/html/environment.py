"""A page of one file: the templates, their style and script inlined, and the policy that allows no other."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from traces.spelling import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_WIDTH: Final = 4_000
"""Longest text shown, in characters: sentences of ours are shorter."""

STYLES: Final = ("page.css", "blocks.css", "analysis.css")
SCRIPTS: Final = ("page.js", "plan.js")
TIMELINE_SCRIPTS: Final = (*SCRIPTS, "pair.js", "timeline_draw.js", "timeline.js")
"""Files of this folder that go into a page of blocks, and into one with timelines."""

Content = Mapping[str, object]


def assemble(template: str, content: Content, scripts: Sequence[str], styles: Sequence[str]) -> str:
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
    page = environment().get_template(template)
    said = page.render(content, policy=Markup(policy), style=Markup(style), script=Markup(script))
    return said.rstrip() + "\n"


def embedded(data: object) -> str:
    """Data as JSON that cannot end the `<script type="application/json">` around it; ASCII only."""
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def harmless(value: object) -> object:
    """Every text that a template prints, before it is escaped: no control characters, no turned reading.

    A number stays beside its percent sign.
    """
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, _WIDTH).replace(" %", "\u00a0%")
    return value


@cache
def environment() -> Environment:
    """The templates of this folder, every text of them escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("reports.write.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["embedded"] = embedded
    return found


def _asset(name: str) -> str:
    text = files("reports.write.html").joinpath(name).read_text(encoding="utf-8").strip()
    if "</s" in text.lower():
        raise ValueError(f"{name} would end its own element in the page")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
