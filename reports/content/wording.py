"""How words are put together, alike on every page."""

from collections.abc import Sequence

from reports.content.blocks import Words, words


def joined(several: Sequence[Words], between: str = ", ") -> Words:
    """Words with something between them."""
    return words(*(span for place, one in enumerate(several) for span in ((between,) if place else ()) + one))


def listed(names: Sequence[str]) -> str:
    """Names as a sentence takes them: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def ended(text: str) -> str:
    """A text with one full stop, or its question mark."""
    return text if text.endswith("?") else f"{text.rstrip('.')}."


def sentence(text: str) -> str:
    """With a capital in front as well."""
    return ended(text[:1].upper() + text[1:])
