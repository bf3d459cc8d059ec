"""No figure in a document without a trace changes unseen."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("first", range(0, 1000, 5 * sources.MANY))
def test_what_is_read_of_altered_texts_is_what_it_was(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    for start in range(first, first + 5 * sources.MANY, sources.MANY):
        hold(f"settings from {start}", sources.altered_settings(start), request)
        hold(f"logs from {start}", sources.altered_logs(tmp_path, start), request)


@pytest.mark.parametrize("first", range(0, 160, sources.EACH))
def test_documents_of_altered_files_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"altered files from {first}", sources.altered_files(tmp_path, first), request)
    hold(f"altered pairs from {first}", sources.altered_pairs(tmp_path, first), request)
    hold(f"altered pairs from {first + 500}", sources.altered_pairs(tmp_path, first + 500), request)
