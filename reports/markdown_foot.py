"""How a ticket ends, of whatever document: what gives it again, what wrote it, what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from reports.document import Document
from reports.markdown_blocks import Block, Code, Command, Line
from reports.redaction import redaction_sentence


def foot_blocks(document: Document) -> Iterator[Block]:
    """The command where the document has it; versions of tool, rules, guides and document; redaction."""
    if command := document.get("command"):
        yield Line("To make this report again:")
        yield Command(command)
    tool = document["tool"]
    guidance = f", guidance {tool['guidance']}" if tool["guidance"] else ""
    rules = f"{tool['name']} {tool['version']} and the rules of that version{guidance}"
    explain = Code("moe-diag explain WORD")
    yield Line((f"{rules}, document {document['schema_version']}. What a word means: ", explain, "."))
    yield Line(redaction_sentence(document))
