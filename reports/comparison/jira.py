"""The comparison in Jira's wiki markup, for a ticket: what the markdown says, details at the end."""

from __future__ import annotations

from reports.comparison.markdown import comparison_page
from reports.document import Document
from reports.jira_marks import jira, jira_size
from reports.markdown_room import JIRA_LENGTH, within


def render_comparison_jira(document: Document, everything: bool = False) -> str:
    """The whole report as far as a field of Jira holds it; a line says which sections were left out.

    `everything`: every suspect, change and limit. Foreign text cannot change how the page reads.
    """
    return within(comparison_page(document, everything), jira, JIRA_LENGTH, jira_size)
