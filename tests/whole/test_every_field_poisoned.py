"""Every text of kept results of every kind, poisoned in turn: none speaks in our voice, in any format."""

from __future__ import annotations

import pytest

from reports.result.codec import Document
from tests.hostile.poison import POISONS, assert_harmless, documents, fields_in, planted_at, several_ranks
from tests.read_back.rendering import PICTURES

TEXTS = ("text", "markdown", "jira", "html", "json", "perfetto", "megatron-lm", "bridge")
EACH = 3
"""Poisons of a field, taken in turn; every twentieth field is drawn as well."""


@pytest.fixture(scope="module")
def kept_documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    made = documents(tmp_path_factory.mktemp("kept"))
    return {**made, "ranks": several_ranks(tmp_path_factory.mktemp("ranks") / "ranks")}


KINDS = ("analysis", "comparison", "configuration", "files", "layouts", "ranks")


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_is_poisoned_is_refused_or_left_out(
    kind: str, kept_documents: dict[str, Document]
) -> None:
    """Of each kind those that no kind before it has."""
    document, names = kept_documents[kind], sorted(POISONS)
    before = {field for other in KINDS[: KINDS.index(kind)] for field in fields_in(kept_documents[other])}
    fields = {field: spot for field, spot in fields_in(document).items() if field not in before}
    assert fields
    for place, (field, spot) in enumerate(fields.items()):
        forms = (*TEXTS, *PICTURES) if place % 20 == 0 else TEXTS
        for number in range(EACH):
            name = names[(EACH * place + number) % len(names)]
            planted = planted_at(document, spot, POISONS[name])
            assert_harmless(planted, f"{field}: {name}", forms if number == 0 else ("text", "html", "json"))
