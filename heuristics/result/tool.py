"""What made a document, the version of its contract, and what documents of a kind begin with."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from traces.missing import Missing
from traces.sections.section import Section
from traces.texts import CommandLine, Key, Release, Sentences

SCHEMA_VERSION: Final = "1.0"
"""Of the documents that are written."""
SchemaVersion = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
"""Of the documents that keep the contract: each later 1.x adds keys and changes none."""


class Tool(Section):
    """What made the result. `guidance`: NVIDIA's guide that decided, None where two runs had
    two.
    """

    name: Literal["moe-diag"]
    version: Release
    guidance: Key | None


def tool_of(base: Key | None, new: Key | None) -> Tool:
    """What compared two runs of which each has its guide; who asked fills in the version."""
    return Tool("moe-diag", "", base if base == new else None)


class OfKind(Section, kw_only=True):
    """How a document that names its kind begins."""

    one_path_a_list: ClassVar[bool] = True
    """In `missing`, what stands in the same place of a list is one entry:
    `attribution[*].count_ns`."""

    schema_version: SchemaVersion
    tool: Tool
    kind: str
    warnings: Sentences
    missing: tuple[Missing, ...]
    redacted: bool
    command: CommandLine | UnsetType = UNSET
