"""The document in Jira's wiki markup, for a ticket: what the markdown says, details at the end."""

from __future__ import annotations

from reports.document import Document
from reports.jira_marks import jira, jira_size
from reports.markdown import analysis_page
from reports.markdown_room import JIRA_LENGTH, within


def render_jira(document: Document, everything: bool = False) -> str:
    """The whole report as far as a field of Jira holds it; a line says which sections were left out.

    `everything`: every fix, and every gap. Foreign text cannot change how the page reads.
    """
    return within(analysis_page(document, everything), jira, JIRA_LENGTH, jira_size)
