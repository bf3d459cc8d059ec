"""Documents made before a change and now, side by side: what differs, by kind.

    python tests/agreement/same_documents.py BEFORE NOW

compares the JSON files of two folders by their names. Equal: every value. A null of before that had a reason
has the same reason and cure now, by the entry of `missing` that is nearest to it. What differs is counted.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]
_BY_ID = ("fixes", "levers", "refused")


class Difference(NamedTuple):
    """One kind of difference: what it is, where (indexes left out), what stood there, what stands now."""

    what: str
    path: str
    before: str = ""
    now: str = ""


def differences(before: Document, now: Document) -> Iterator[Difference]:
    """Everything in which a document differs from the one of before. Fixes are compared by their ids."""
    for key in _BY_ID:
        order = [[one["id"] for one in document.get(key, [])] for document in (before, now)]
        if order[0] != order[1]:
            yield Difference("order differs", key)
    before, now = _by_id(before), _by_id(now)
    untold = [path for path, value in leaves(before) if value is None]
    yield from _values({**before, "missing": None}, {**now, "missing": None}, "")
    old, new = _gaps(before), _gaps(now)
    for path in untold:
        was, is_ = _reason(path, old), _reason(path, new)
        if was != is_:
            what = "reason is gone" if is_ is None else "reason is new" if was is None else "reason differs"
            yield Difference(what, plain(path), _said(was), _said(is_))
    for path, gap in old.items():
        if not any(_covers(path, one) for one in untold) and _reason(path, new) != gap:
            yield Difference("note is gone", plain(path), _said(gap))
    for path, gap in new.items():
        if not any(_covers(path, one) for one in untold) and path not in old:
            yield Difference("note is new", plain(path), "", _said(gap))


def _by_id(document: Document) -> Document:
    """With fixes under their ids, in the paths of gaps too."""
    changed = dict(document)
    for key in _BY_ID:
        ids = [one["id"] for one in document.get(key, [])]
        changed[key] = dict(zip(ids, document.get(key, []), strict=True))
        changed["missing"] = [
            {**gap, "path": f"{key}.{ids[int(found[1])]}{found[2]}"}
            if (found := re.fullmatch(rf"{key}\[(\d+)\](.*)", gap["path"]))
            else gap
            for gap in changed.get("missing", [])
        ]
    return changed


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a document with its path, but for the list of gaps."""
    if isinstance(value, dict):
        for key, one in value.items():
            if path or key != "missing":
                yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from leaves(one, f"{path}[{place}]")
    else:
        yield path, value


def has_reason(path: str, document: Document) -> bool:
    """Whether an entry of `missing` is of this path, or of what it lies in."""
    return _reason(path, _gaps(document)) is not None


def plain(path: str) -> str:
    """A path without its indexes, and without ids of fixes."""
    return re.sub(r"\[(\d+|\*)\]|\.[A-Z]{3}-\d+\b", "[]", path)


def _values(before: Any, now: Any, path: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            place = f"{path}.{key}" if path else key
            if key not in now:
                yield Difference("key is gone", plain(place))
            elif key not in before:
                yield Difference("key is new", plain(place), "", _short(now[key]))
            else:
                yield from _values(before[key], now[key], place)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, pair in enumerate(zip(before, now, strict=True)):
            yield from _values(*pair, f"{path}[{place}]")
    elif before != now or type(before) is not type(now):
        yield Difference("value differs", plain(path), _short(before), _short(now))


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _gaps(document: Document) -> dict[str, tuple[str, str]]:
    return {one["path"]: (one["reason"], one["cure"]) for one in document.get("missing", [])}


def _reason(path: str, gaps: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Of the entry nearest to a path."""
    found = [one for one in gaps if _covers(one, path)]
    return gaps[max(found, key=len)] if found else None


def _covers(entry: str, path: str) -> bool:
    wanted, parts = _parts(entry), _parts(path)
    return len(wanted) <= len(parts) and all(
        one in (part, "*") for one, part in zip(wanted, parts, strict=False)
    )


def _parts(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


def _said(gap: tuple[str, str] | None) -> str:
    return " | ".join(gap) if gap else ""


def compare_folders(before: Path, now: Path) -> tuple[int, Counter[Difference]]:
    """How many documents stand in both folders, and in how many places each difference is found."""
    found: Counter[Difference] = Counter()
    compared = 0
    for path in sorted(before.glob("*.json")):
        documents = [_document(folder / path.name) for folder in (before, now)]
        if documents[0] is None and documents[1] is None:
            continue
        if documents[0] is None or documents[1] is None:
            found[Difference("document in one folder only", path.name)] += 1
            continue
        compared += 1
        found.update(differences(documents[0], documents[1]))
    return compared, found


def _document(path: Path) -> Document | None:
    """A document of ours; None for what is none."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) and "schema_version" in read else None


def main() -> None:
    """Print every difference with its count, the most frequent first."""
    compared, found = compare_folders(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{compared} documents compared")
    for one, count in sorted(found.items(), key=lambda item: (item[0].what, -item[1])):
        print(f"{count:6}  {one.what}: {one.path}  [{one.before}] -> [{one.now}]")


if __name__ == "__main__":
    main()
