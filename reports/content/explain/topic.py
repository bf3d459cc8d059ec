"""One thing that can be explained, and the ways to write its blocks."""

from collections.abc import Callable

from reports.content.blocks import Blocks
from reports.content.names import statement
from traces.frozen import frozen


@frozen
class Topic:
    """`name`: the id as it is printed; `kind`: what it is; `blocks`: what is said of it, under
    `title`.
    """

    name: str
    kind: str
    blocks: Callable[[], Blocks]
    title: str = ""


def sentence(text: str, label: str = "") -> Blocks:
    """A sentence; nothing where there is no text."""
    if text:
        yield statement(text, label)


def sentences(*labelled: tuple[str, str]) -> Blocks:
    """Sentences, each with its label; none where there is no text."""
    for label, text in labelled:
        yield from sentence(text, label)


def paragraphs(text: str) -> Blocks:
    """A text paragraph by paragraph; references stand on a line of their own."""
    for paragraph in text.split("\n\n"):
        before, references, after = " ".join(paragraph.split()).partition("References: ")
        yield from sentence(before.strip())
        yield from sentence(after.strip(), references.strip(": "))
