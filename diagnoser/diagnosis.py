"""What `analyze` returns."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.document import Document

if TYPE_CHECKING:
    import pandas as pd

_GROUPS: Final = {
    "exposed_comm_kind": "exposed_comm_by_kind_ns",
    "exposed_copy_kind": "exposed_copy_by_kind_ns",
    "compute_class": "compute_by_class_ns",
}
_COLUMNS: Final = ["trace", "process", "device", "group", "key", "ns", "frac"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finished diagnosis."""

    _document: Document
    skipped: tuple[str, ...] = ()
    """Why traces given beside the ones diagnosed were left out, one line each."""

    def __repr__(self) -> str:
        names = ", ".join(trace["name"] for trace in self._document["traces"]) or self._document["about"]
        return f"<Diagnosis of {names}: {len(self._document['ranks'])} ranks>"

    def to_dict(self) -> Document:
        """The JSON document, version 1.0, as plain values; a copy of its own."""
        return copy.deepcopy(self._document)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per rank and bucket, kind or class.

        Columns: trace, process, device, group (`bucket`, `exposed_comm_kind`, `exposed_copy_kind`,
        `compute_class`), key, ns (Int64, <NA> where not told), frac (of the rank's window). The rows of
        `bucket` add up to the window; each other group adds up to its bucket.
        """
        import pandas as pd

        frame = pd.DataFrame(list(self._rows()), columns=_COLUMNS)
        return frame.astype({"process": "Int64", "device": "Int64", "ns": "Int64", "frac": "Float64"})

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for rank in self._document["ranks"]:
            window_ns = rank["budget_ns"]["window"]
            buckets = {key: ns for key, ns in rank["budget_ns"].items() if key != "window"}
            groups = {"bucket": buckets} | {group: rank[section] or {} for group, section in _GROUPS.items()}
            for group, parts in groups.items():
                for key, ns in parts.items():
                    frac = None if ns is None else ns / window_ns
                    yield rank["trace"], rank["process"], rank["device"], group, key, ns, frac
