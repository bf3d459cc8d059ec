"""Summaries of ranks: kept in a folder, and put together as a run: who makes whom wait, without any
trace.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET

from diagnoser.diagnosis import FinishedResult
from diagnoser.output import base_name, check_place, writing
from diagnoser.running.inputs.named import entries_in, files_named
from diagnoser.running.inputs.skipped import why_skipped
from diagnoser.running.inputs.witnesses import read_all
from diagnoser.running.work.freed_memory import keep_freed_memory
from diagnoser.version import VERSION
from heuristics.late.run import judge, run_of
from heuristics.result.result import Merged
from heuristics.result.tool import SCHEMA_VERSION, Tool
from heuristics.run.repairs import repaired
from reports.rows import each
from traces.errors import InputError, NotATrace, TraceNotFound, UsageError
from traces.files.aside import sweep, write_whole_in
from traces.files.folder import open_folder
from traces.files.plain_file import read_bytes
from traces.frozen import frozen
from traces.names.file_names import WITHHELD, told_path
from traces.patterns import compiled
from traces.ranks.one_run.mixed import refuse_mixed
from traces.ranks.summaries.codec import MOST, SUFFIX
from traces.ranks.summaries.codec import encode as summary_bytes
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import RankSummary
from traces.texts import Texts
from traces.unlike import refuse_unlike_summaries


@frozen
class MergedRun(FinishedResult):
    """A run that was put together; `skipped`: why files were left out, one line each."""

    result: Merged
    skipped: Texts = ()


def merge_summaries(paths: Sequence[Path], witness: Sequence[Path] = ()) -> MergedRun:
    """The run of all summaries in files and folders; their order does not matter.

    `witness`: files of a second witness, which may stand alone.

    A file that cannot be used is named, and the others go on. Raises the first such `InputError`
    where none can be used, `UsageError` where nothing is named or a file is named twice.
    """
    if not paths and not witness:
        raise UsageError("no summary given. Name files or a folder: moe-diag merge FOLDER")
    keep_freed_memory()

    def none(folder: Path) -> str:
        return (
            f"{folder} has no summaries (*{SUFFIX}). Make them: moe-diag analyze TRACES "
            f"--summary {folder}"
        )

    read, failed, warnings = [], [], []
    for path in files_named(paths, lambda folder: entries_in(folder, SUFFIX), none):
        try:
            read.append(decode(_read(path), str(path)))
        except InputError as error:
            failed.append(error)
            why = why_skipped(error)
            if isinstance(error, NotATrace):
                why = "it is no summary that this moe-diag reads"
            warnings.append(f"{told_path(path)} was skipped: {why}")
    if failed and not read:
        raise failed[0]
    refuse_unlike_summaries(read)
    names, judged = each(read, "identity.trace"), judge(read)
    refuse_mixed(judged.measured.together, names, "merge")
    run = repaired(run_of(judged, names))
    witnessed = read_all(witness, each(run.ranks, "rank"))
    merged = Merged(
        schema_version=SCHEMA_VERSION,
        kind="run",
        tool=Tool("moe-diag", VERSION, None),
        redacted=True,
        warnings=(*warnings, *witnessed.warnings),
        missing=(),
        traces=tuple(names[index] for index in judged.measured.together.indices),
        run=run,
        hang=UNSET if witnessed.hang is None else witnessed.hang,
        witness=witnessed.witness,
    )
    return MergedRun(merged, (*map(str, failed), *witnessed.skipped))


def _read(path: Path) -> bytes:
    """No more is read than a summary can have. Raises `TraceNotFound` for what cannot be read."""
    try:
        return read_bytes(path, MOST.whole + 1)
    except OSError as error:
        raise TraceNotFound(
            f"{path} cannot be read ({error.strerror or 'no such file'}). Check the path."
        ) from None
    except ValueError as error:
        raise TraceNotFound(f"{path} is {error}. Name a summary, or a folder of them.") from None


def check_folder(folder: Path, traces: Sequence[Path], force: bool) -> None:
    """Before any work: the folder can be, and nothing of these traces is in it.

    Raises `UsageError` for a summary that is there already, unless `force`, `OutputNotWritable` for
    a place that can be no folder.
    """
    check_place(folder, "--summary")
    sweep(folder)
    bases = {*map(base_name, traces)}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        is_there = name in bases or compiled(r"_\d+$").sub("", name) in bases
        if is_there and not force and WITHHELD not in name:
            raise UsageError(
                f"{path} exists. Give --force-overwrite to replace it, or another place with "
                f"--summary."
            )


def keep_summaries(
    folder: Path, summaries: Sequence[tuple[Path, RankSummary]], force: bool
) -> None:
    """Write the summary of each rank with the trace that it came from; each file is whole or not
    there.

    A file is named as its trace; where several ranks would have one name, a number follows. A name
    that is told in part may be that of another recording too: it goes by the rank.
    """
    by_name = defaultdict[str, list[RankSummary]](list)
    for trace, summary in summaries:
        by_name[base_name(trace)].append(summary)
    by_file = {}
    for base, of_one_name in by_name.items():
        for index, kept in enumerate(of_one_name):
            number = f"_{index}" if len(of_one_name) > 1 else ""
            if WITHHELD in base and kept.identity.rank is not None:
                number = f"_rank{kept.identity.rank}"
            by_file[f"{base}{number}{SUFFIX}"] = kept
    with writing(folder, "--summary"):
        folder.mkdir(exist_ok=True)
        with open_folder(folder, follow=False) as place:
            for name, summary in by_file.items():
                with writing(folder / name, "--summary"):
                    write_whole_in(place, name, summary_bytes(summary), force)
