"""No figure in a document without a trace changes unseen."""

from __future__ import annotations

import pytest

from tests.kept import sources
from tests.kept.kept import hold


@pytest.mark.parametrize("first", range(0, 200, sources.EACH))
def test_opinions_on_drawn_configurations_are_what_they_were(
    request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"configurations from {first}", sources.drawn_configurations(first), request)


def test_documents_of_files_are_what_they_were(request: pytest.FixtureRequest) -> None:
    hold("files", sources.configurations(), request)
    hold("pairs of files", sources.pairs_of_files(), request)


def test_layouts_of_published_models_are_what_they_were(request: pytest.FixtureRequest) -> None:
    hold("layouts", sources.layouts(), request)
