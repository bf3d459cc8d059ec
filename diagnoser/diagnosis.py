"""What `analyze`, `check_config` and `compare` return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from reports.result.codec import Document, encode
from traces.missing import known

if TYPE_CHECKING:
    import pandas as pd

    from heuristics.result.compared import Compared
    from heuristics.result.compared_files import ComparedFiles
    from heuristics.result.gate import Gate
    from heuristics.result.judged import Fix, Verdict, Wall
    from heuristics.result.layouts import Layouts
    from heuristics.result.result import Result
    from traces.ranks.summary import RankSummary
    from traces.sections.rank import Rank

_COLUMNS: Final = ["trace", "process", "device", "group", "key", "ns", "frac"]
_TIMES: Final = ("delta_ns", "count_ns", "duration_ns", "overlap_ns")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finished diagnosis."""

    result: Result
    """Everything that was found, typed: a value that could not be told is `traces.missing.Missing`."""
    skipped: tuple[str, ...] = ()
    """Why traces given beside the ones diagnosed were left out, one line each."""
    summaries: tuple[tuple[Path, RankSummary], ...] = ()
    """Of each rank that was measured its trace, and what a run of many ranks needs of it."""

    def __repr__(self) -> str:
        result = self.result
        names = ", ".join(trace.name for trace in result.traces)
        if result.about is not UNSET:
            names = result.about
        return f"<Diagnosis of {names}: {len(result.ranks)} ranks>"

    def _repr_html_(self) -> str:
        """The first screen, as a notebook shows it."""
        from html import escape

        from reports.content.blocks import Asked
        from reports.formats import FORMATS

        return f"<pre>{escape(str(FORMATS['text'].write(self.result, Asked())))}</pre>"

    @property
    def verdict(self) -> Verdict:
        """The one wall that costs most, how sure that is, and why."""
        return self.result.verdict

    @property
    def walls(self) -> tuple[Wall, ...]:
        """Memory, communication, host overhead and compute: what each costs at most."""
        return self.result.walls

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What to change, in the order to try."""
        return self.result.fixes

    def to_dict(self) -> Document:
        """The JSON document, version 1.0, as plain values; a copy of its own."""
        return encode(self.result)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per rank and bucket, kind or class.

        Columns: trace, process, device, group (`bucket`, `exposed_comm_kind`, `exposed_copy_kind`,
        `compute_class`), key, ns (Int64, <NA> where not told), frac (of the rank's window). The rows of
        `bucket` add up to the window; each other group adds up to its bucket.
        """
        import pandas as pd

        rows = [row for rank in self.result.ranks for row in _rows(rank)]
        frame = pd.DataFrame(rows, columns=_COLUMNS)
        return frame.astype({"process": "Int64", "device": "Int64", "ns": "Int64", "frac": "Float64"})


def _rows(rank: Rank) -> Iterator[tuple[Any, ...]]:
    buckets = asdict(rank.budget_ns)
    window_ns = buckets.pop("window")
    groups = {
        "bucket": buckets,
        "exposed_comm_kind": known(rank.exposed_comm_by_kind_ns) or {},
        "exposed_copy_kind": rank.exposed_copy_by_kind_ns,
        "compute_class": rank.compute_by_class_ns,
    }
    for group, parts in groups.items():
        for key, told in parts.items():
            ns = known(told)
            frac = None if ns is None else ns / window_ns
            yield rank.trace, known(rank.process), rank.device, group, key, ns, frac


class _Compared:
    """What a finished comparison of either kind answers."""

    __slots__ = ()
    result: Compared | ComparedFiles

    @property
    def gate(self) -> Gate | None:
        """The answer of the gate, None where none was given."""
        return self.result.gate

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0 or 1 by a gate; without one 5 is undecided, 6 not comparable."""
        return int(self.result.ends_with)

    def to_dict(self) -> Document:
        """The JSON document of a comparison, version 1.0, as plain values; a copy of its own."""
        return encode(self.result)


@dataclass(frozen=True, slots=True)
class ComparisonResult(_Compared):
    """A finished comparison."""

    result: Compared
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        return f"<Comparison: {self.result.verdict}>"

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per row of the attribution, the largest difference first.

        Columns: row, wall, and per step, new less base, positive is slower, delta_ns with its parts count_ns,
        duration_ns, overlap_ns (Int64, <NA> where unknown). `delta_ns` adds up to the document's
        `step_delta_ns`.
        """
        import pandas as pd

        columns = ["row", "wall", *_TIMES]
        rows = [[known(asdict(row)[column]) for column in columns] for row in self.result.attribution]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(_TIMES, "Int64"))


@dataclass(frozen=True, slots=True)
class FilesResult(_Compared):
    """A finished comparison of configurations and logs."""

    result: ComparedFiles
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        return f"<Comparison of files: {self.result.verdict}>"


@dataclass(frozen=True, slots=True)
class LayoutsResult:
    """Layouts of a model on some GPUs."""

    result: Layouts
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        found = self.result
        return f"<Layouts of {found.about} on {found.gpus} {found.gpu}: {len(found.layouts)}>"

    def to_dict(self) -> Document:
        """The JSON document of the list, version 1.0, as plain values; a copy of its own."""
        return encode(self.result)
