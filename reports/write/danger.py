"""Characters of a foreign text that a markup takes for its own: some everywhere, others in some
places.

A pattern of ours looks neither ahead nor back, so each character that may be one is asked for by
what stands beside it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from traces.patterns import Match, Pattern, compiled, literal
from traces.toml_tables import TableRow, read_table

_ROOM: Final = 12
"""Characters beside one that are looked at: more than any row below asks for."""


class Where(TableRow):
    """Any of `characters`, right behind what `before` matches and right before what `after`
    does.
    """

    characters: str
    before: str = ""
    after: str = ""


class Dangers:
    """The characters that a markup would take for its own."""

    def __init__(self, rows: Iterable[Where]) -> None:
        self._beside = defaultdict[str, list[tuple[Pattern, Pattern]]](list)
        for row in rows:
            beside = compiled(f"(?:{row.before})$"), compiled(row.after)
            for character in row.characters:
                self._beside[character].append(beside)
        self._any = compiled("|".join(map(literal, self._beside)))

    def sub(self, escaped: Callable[[str], str], text: str) -> str:
        """The text with each of them escaped."""

        def replaced(match: Match) -> str:
            at = match.start()
            before, after = text[max(0, at - _ROOM) : at], text[at + 1 : at + 1 + _ROOM]
            if any(
                behind.search(before) is not None and ahead.match(after) is not None
                for behind, ahead in self._beside[text[at]]
            ):
                return escaped(match[0])
            return match[0]

        return self._any.sub(replaced, text)


@cache
def dangers(markup: str) -> Dangers:
    """Those of a markup, `github` or `jira`."""
    return Dangers(read_table("reports.write", "danger.toml", dict[str, tuple[Where, ...]])[markup])
