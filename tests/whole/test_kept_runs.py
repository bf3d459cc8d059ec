"""No figure in a document of one recording changes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kept import sources
from tests.kept.kept import hold


def test_documents_of_the_demo_are_what_they_were(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    hold("demo", sources.demo(tmp_path), request)


@pytest.mark.parametrize("first", range(1000, 1060, sources.EACH))
def test_documents_of_small_runs_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"small runs from {first}", sources.small_runs(tmp_path, first), request)


@pytest.mark.parametrize("first", range(3000, 3060, sources.EACH))
def test_documents_of_runs_with_exceptions_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"exceptions from {first}", sources.exceptions(tmp_path, first), request)


@pytest.mark.parametrize("first", range(0, 60, sources.EACH))
def test_documents_of_exchanges_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"exchanges from {first}", sources.exchanges(tmp_path, first), request)


def test_documents_of_profiled_runs_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    hold("profiled runs", sources.profiled(tmp_path), request)


@pytest.mark.parametrize("first", range(900, 900 + 2 * sources.FEW, sources.FEW))
def test_documents_of_simulated_runs_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"simulated runs from {first}", sources.simulated(tmp_path, first), request)


@pytest.mark.parametrize("first", range(6000, 6300, sources.EACH))
def test_what_is_measured_of_exchanges_is_what_it_was(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"facts of exchanges from {first}", sources.facts_of_exchanges(tmp_path, first), request)


@pytest.mark.parametrize("first", range(8000, 8200, sources.EACH))
def test_what_is_measured_of_exceptions_is_what_it_was(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"facts of exceptions from {first}", sources.facts_of_exceptions(tmp_path, first), request)
