"""The document of a run that writers of pages and timelines change."""

from __future__ import annotations

import copy

import pytest

import diagnoser
from bench.simulate.export import write_export
from reports.result.codec import Document
from tests.doubles.document import DISPATCH, exposed


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Four steps of 10 ms: 6 of GEMM, 3 of DeepEP's dispatch, 1 of another kernel."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    return diagnoser.analyze(path).to_dict()


@pytest.fixture
def document(diagnosed: Document) -> Document:
    return copy.deepcopy(diagnosed)
