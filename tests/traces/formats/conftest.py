"""Loops run both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traces import loops


@pytest.fixture(scope="session")
def compiled_code(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache folder of the tests' own, so that loops are compiled once and nothing of the user's is used."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=["interpreted", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, compiled_code: str) -> str:
    """How loops run, whatever the work."""
    way: str = request.param
    monkeypatch.setenv("XDG_CACHE_HOME", compiled_code)
    from_ = 0 if way == "compiled" else 1 << 62
    monkeypatch.setattr(loops, "COMPILED_FROM", replace(loops.COMPILED_FROM, value=from_))
    return way
