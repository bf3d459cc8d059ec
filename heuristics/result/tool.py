"""What made a document, and the version of its contract."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from traces.sections.section import Section
from traces.texts import Key, Release

SCHEMA_VERSION: Final = "1.0"
"""Of the documents that are written."""
SchemaVersion = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
"""Of the documents that keep the contract: each later 1.x adds keys and changes none."""


class Tool(Section, frozen=True):
    """What made the result. `guidance`: NVIDIA's guide that decided, None where two runs had two."""

    name: Literal["moe-diag"]
    version: Release
    guidance: Key | None
