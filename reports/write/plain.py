"""Words as one plain string, for formats that know no markup."""

from reports.content.blocks import Code, Words
from reports.content.names import name_of


def plain(said: Words) -> str:
    """The words one after the other; keys by their names. What is foreign is as foreign as before."""
    return "".join(
        one if isinstance(one, str) else one.text if isinstance(one, Code) else name_of(one.key)
        for one in said
    )
