"""What `analyze`, `check_config` and `compare` return."""

from __future__ import annotations

from dataclasses import field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from diagnoser import frames
from reports.result.codec import Document, encode
from reports.rows import each
from traces.errors import OutputNotWritable, UsageError
from traces.files.aside import write_whole
from traces.frozen import frozen
from traces.missing import known
from traces.texts import Texts

if TYPE_CHECKING:
    import pandas as pd

    from heuristics.result.compared import Compared
    from heuristics.result.compared_files import ComparedFiles
    from heuristics.result.gate import Gate
    from heuristics.result.judged import Verdict
    from heuristics.result.layouts import Layouts
    from heuristics.result.result import Result
    from traces.ranks.summaries.summary import RankSummary

_TIMES: Final = ("delta_ns", "count_ns", "duration_ns", "overlap_ns")


class FinishedResult:
    """What every finished result answers: as text, in a notebook, and as a file of any format."""

    __slots__ = ()
    result: Any

    def text(self, full: bool = False) -> str:
        """What the command prints: the first screen, or all of it."""
        from reports.content.page import Asked, Detail
        from reports.formats import FORMATS

        return str(FORMATS["text"].write(self.result, Asked(Detail.FULL if full else Detail.FIRST)))

    def _repr_html_(self) -> str:
        """The page without its timelines in a frame of its own, as a notebook shows it."""
        from html import escape

        from reports.content.page import Asked, View
        from reports.formats import FORMATS

        page = escape(str(FORMATS["html"].write(self.result, Asked(view=View(timelines=False)))))
        style = "width:100%;height:48em;border:0"
        return f'<iframe srcdoc="{page}" style="{style}" sandbox="allow-scripts"></iframe>'

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write a file in the format that its name ends in: `.html`, `.json`, `.md`, `.png` ...

        Raises `UsageError` for an ending of none, a format that this result does not have, and an
        existing file without `overwrite`; `OutputNotWritable` where nothing can be written.
        """
        from reports.content.page import Asked
        from reports.formats import FORMATS, as_bytes, form_of_file, kind_of, named

        path, form, kind = Path(path), form_of_file(str(path)), kind_of(self.result)
        if kind not in FORMATS[form].kinds:
            raise UsageError(f"this result has no {form}. It has {', '.join(named(kind))}.")
        try:
            write_whole(path, as_bytes(FORMATS[form].write(self.result, Asked())), overwrite)
        except FileExistsError:
            raise UsageError(f"{path} exists. Give overwrite=True to replace it.") from None
        except OSError as error:
            raise OutputNotWritable(
                f"{path} cannot be written ({error.strerror}). Name another."
            ) from None
        return path

    def to_dict(self) -> Document:
        """The JSON document, version 1.0, as plain values; a copy of its own."""
        return encode(self.result)


@frozen
class Diagnosis(FinishedResult):
    """A finished diagnosis. Its tables are pandas frames: times in ns, <NA> where a value is not
    known.
    """

    result: Result
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""
    skipped: Texts = ()
    """Why traces given beside the ones diagnosed were left out, one line each."""
    summaries: tuple[tuple[Path, RankSummary], ...] = field(default=(), compare=False)
    """Of each rank that was measured its trace, and what a run of many ranks needs of it."""

    def __repr__(self) -> str:
        result = self.result
        names = ", ".join(each(result.traces, "name"))
        if result.about is not UNSET:
            names = result.about
        return f"<Diagnosis of {names}: {len(result.ranks)} ranks>"

    @property
    def verdict(self) -> Verdict:
        """The one wall that costs most, how sure that is, and why."""
        return self.result.verdict

    @property
    def walls(self) -> pd.DataFrame:
        """Memory, communication, host overhead and compute: what each costs at most."""
        return frames.frame("walls", map(asdict, self.result.walls))

    @property
    def fixes(self) -> pd.DataFrame:
        """What to change, in the order to try; settings of several lines have one a line."""
        return frames.frame("fixes", map(frames.fix_row, self.result.fixes))

    @property
    def ranks(self) -> pd.DataFrame:
        """One row per rank: its step, the buckets that its window adds up to, and who waited for
        whom.
        """
        return frames.frame("ranks", frames.ranks(self.result))

    @property
    def steps(self) -> pd.DataFrame:
        """Every recorded step, and why it was left out if it was."""
        return frames.frame("steps", frames.steps(self.result))

    @property
    def kernels(self) -> pd.DataFrame:
        """Kernels by name, grid and class over the used steps, those with the most work first."""
        return frames.frame("kernels", frames.kernels(self.result))

    @property
    def timeline(self) -> pd.DataFrame:
        """Steps as they ran: activities of the GPU, calls and ranges of the host, why no compute
        ran.
        """
        return frames.frame("timeline", frames.timeline(self.result))

    def to_frame(self) -> pd.DataFrame:
        """One row per rank and bucket, kind or class.

        Columns: trace, process, device, group (`bucket`, `exposed_comm_kind`, `exposed_copy_kind`,
        `compute_class`), key, ns (Int64, <NA> where unknown), frac (of the rank's window). The rows
        of `bucket` add up to the window; each other group adds up to its bucket.
        """
        return frames.frame("parts", frames.parts(self.result))


class _Compared(FinishedResult):
    """What a finished comparison of either kind answers."""

    __slots__ = ()
    result: Compared | ComparedFiles

    @property
    def gate(self) -> Gate | None:
        """The answer of the gate, None where none was given."""
        return self.result.gate

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0 or 1 by a gate; without one 5 is undecided, 6 not
        comparable.
        """
        from heuristics.result.compared import exit_of

        return int(exit_of(self.result.verdict, self.result.gate))


@frozen
class ComparisonResult(_Compared):
    """A finished comparison."""

    result: Compared
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        return f"<Comparison: {self.result.verdict}>"

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per row of the attribution, the largest difference first.

        Columns: row, wall, and per step, new less base, positive is slower, delta_ns with its parts
        count_ns, duration_ns, overlap_ns (Int64, <NA> where unknown). `delta_ns` adds up to the
        document's `step_delta_ns`.
        """
        import pandas as pd

        columns = ("row", "wall", *_TIMES)
        rows = [[*map(known, row)] for row in map(attrgetter(*columns), self.result.attribution)]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(_TIMES, "Int64"))


@frozen
class FilesResult(_Compared):
    """A finished comparison of configurations and logs."""

    result: ComparedFiles
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        return f"<Comparison of files: {self.result.verdict}>"


@frozen
class LayoutsResult(FinishedResult):
    """Layouts of a model on some GPUs."""

    result: Layouts
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        plan = self.result
        return f"<Layouts of {plan.about} on {plan.gpus} {plan.gpu}: {len(plan.layouts)}>"
