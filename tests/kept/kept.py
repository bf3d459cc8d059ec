"""Documents beside the digests that are kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kept.digests import digests
from tests.kept.sources import Documents
from tests.places import DATA

KEPT: Final = DATA / "kept_documents.json"
Source = Callable[[Path, Any], Documents]
"""Makes documents in a folder, from a seed or of a kind on."""


def families_are_kept(*rows: tuple[str, Source, Iterable[Any]]) -> Callable[..., None]:
    """A test of each family; `{}` of its name is where its documents begin."""
    several = [(name.format(first), source, first) for name, source, firsts in rows for first in firsts]

    def test(tmp_path: Path, request: pytest.FixtureRequest, family: str, source: Source, first: Any) -> None:
        _hold(family, source(tmp_path, first), request)

    marked = pytest.mark.parametrize(("family", "source", "first"), several, ids=[row[0] for row in several])
    found: Callable[..., None] = marked(test)
    return found


def _hold(family: str, documents: Documents, request: pytest.FixtureRequest) -> None:
    """Each document of a family is what it was; `--update-golden` first makes the new ones what is kept.

    To see what changed of a document, make it here and at the commit before, and compare the two.
    """
    found = {name: digests(document) for name, document in documents}
    refused = [name for name, sections in found.items() if [*sections] == ["refused"]]
    assert 2 * len(refused) < len(found), f"{family}: most are refused, which tells nothing of them"
    kept: dict[str, dict[str, dict[str, str]]] = json.loads(KEPT.read_text(encoding="utf-8"))
    if request.config.getoption("--update-golden"):
        kept[family] = found
        KEPT.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    before = kept.get(family, {})
    names = sorted({*found, *before})
    told = {name: _changed(before.get(name, {}), found.get(name, {})) for name in names}
    changed = [f"{name}: {', '.join(sections)}" for name, sections in told.items() if sections]
    if changed:
        pytest.fail(f"{family}, sections that are not what they were:\n" + "\n".join(changed), pytrace=False)


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
