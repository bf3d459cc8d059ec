"""The functions of the public API, each of one request, called with its fields."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.diagnosis import ComparisonResult, Diagnosis, FilesResult, LayoutsResult
from diagnoser.options.requests import (
    Analysis,
    Check,
    Comparison,
    FilesComparison,
    LayoutPlan,
    keywords,
)

if TYPE_CHECKING:
    from diagnoser.options import Place
    from diagnoser.running.merging import MergedRun


@keywords(Analysis)
def analyze(request: Analysis) -> Diagnosis:
    """Diagnose one trace, or several of one run.

    `paths` are `.nsys-rep`, `.qdrep`, SQLite exports, or `.json[.gz]` of the PyTorch profiler,
    folders of them, or patterns; `ranks` is a CSV file of rank numbers (docs/ranks.md). `steps`,
    `nvtx`, `start`, `end`, `rank`, `gpu`, `nsys`, `cache_dir` and `reader` are as the options of
    the command. `jobs` traces are read at once (None: by cores), each in a process: a script then
    runs under `if __name__ == "__main__":`. With `scheduler`, the address of one of dask, its
    workers read them. `config` is the run's configuration: a YAML or overrides of Megatron-Bridge,
    a command or script of Megatron-LM; `log` the text that the run printed; `about` what neither
    tells: {"gpu": "H100", "ep": 16, "core_version": "0.16.1"}, by the fields of `run.Given` of
    heuristics. With `ask_megatron`, an installed megatron-core is asked about each change.

    The document names traces by their base names and withholds texts of the configuration that
    could be a path or a name; without `redact` it holds both. `progress` is called with what is
    done and its fraction.

    Raises `UsageError` for a selection or a map that cannot be, `InputError` for a file that cannot
    be used, `NothingToDiagnose` without GPU work; all are `MoeDiagError`. Beside others that can be
    used, a trace that cannot becomes a warning of the document.
    """
    from diagnoser.running.pipeline import diagnose

    return diagnose(request)


@keywords(Check)
def check_config(request: Check) -> Diagnosis:
    """Judge a configuration without a trace: is it legal, what does the workflow say, what to try.

    `path` is as `config` of `analyze`. `symptoms` is a JSON file of measurements by the document's
    names, or an earlier result: with it the walls are judged and a plan is made. The others are as
    for `analyze`.

    The document has the contract's keys, without traces and ranks; `configuration.legal` is the
    answer. Raises `InputError` for a file that cannot be used.
    """
    from diagnoser.running.configuration import check_config as check

    return check(request)


@keywords(Comparison)
def compare(request: Comparison) -> ComparisonResult:
    """Compare two runs: is it really slower, by how much, where, and what changed that can explain
    it.

    `base` and `new` are each a trace, a folder or pattern of those of one run, or an earlier result
    by its path, a document (`to_dict()`), or a diagnosis. `jobs` is as for `analyze`. `base_gpu`,
    `new_gpu`: the CUDA device that is compared, the first rank's by default; with them one file may
    stand on both sides. Logs give the size of the difference without the profiler. `steps` and
    `nvtx` choose in both traces and are refused for earlier results; `about`, as for `analyze`, is
    said of both runs. `gate` is a limit such as "3%"; what it says is the `gate` of what comes
    back; `undecided` and `not_comparable` are its answers, "pass" or "fail", where it cannot be
    judged. `exit_code` is what the command would end with. `expect`: what fixes of the new side
    should gain of a step, such as "com-3=6ms". `more_base`: further recordings of what base is,
    each given as base is: how much runs vary by themselves then counts. `redact` is as for
    `analyze`; with it a result made without it is refused.

    Raises what `analyze` does, and `InputError` for a document that is no result of ours or of a
    newer schema, `NothingToDiagnose` for one without a rank. Messages begin with "base: ", "new: "
    or "more-base 1: ".
    """
    from diagnoser.running.comparison import compare_sides

    return compare_sides(request)


@keywords(FilesComparison)
def compare_files(request: FilesComparison) -> FilesResult:
    """Compare two runs by their configurations and logs, without a trace.

    `base` and `new` are configurations as `path` of `check_config`, `base_log` and `new_log` what
    the runs printed; of each side one may be left out. The logs give the size of the difference and
    whether either drifts, the configurations what differs in effect and which known change can
    explain the size. `about`, `gate`, `undecided`, `not_comparable` and `redact` are as for
    `compare`.

    Raises `UsageError` where a side has neither, `InputError` for a file that cannot be used.
    Messages about a file begin with "base: " or "new: ".
    """
    from diagnoser.running.files_compared import compare_files as compared

    return compared(request)


def load(path: "Place", redact: bool = True) -> Diagnosis | ComparisonResult | FilesResult:
    """A result that was kept as JSON (`save("run.json")`, `-o run.json`), of whatever command.

    Raises `InputError` for what is no result of ours or of a newer schema, `UsageError` for one
    that is not redacted where `redact` asks for it.
    """
    from diagnoser.output.results import saved_result
    from heuristics.result.result import Result
    from reports.formats import ResultKind, kind_of

    result = saved_result(Path(path), redact)
    if isinstance(result, Result):
        return Diagnosis(result)
    made = ComparisonResult if kind_of(result) is ResultKind.COMPARISON else FilesResult
    return made(result)  # type: ignore[arg-type]


def merge(paths: "Place | Iterable[Place]") -> "MergedRun":
    """Put summaries of ranks together (`analyze --summary`): who makes whom wait, without any
    trace.

    `paths`: files and folders of summaries. Raises `UsageError` where nothing is named or a file is
    named twice, `InputError` where none can be used.
    """
    from diagnoser.running.merging import merge_summaries

    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return merge_summaries([*map(Path, given)])


def explain(word: str = "") -> str:
    """What a word of a report means: a wall, fix, measure, rule or setting; without one, all of
    them.

    On one screen, as `moe-diag explain WORD` prints it. Raises `UsageError` for an unknown one,
    naming the nearest.
    """
    from reports.content.explain.page import explain_page
    from reports.content.page import Detail, View
    from reports.write.text import write_text

    return write_text(explain_page(word, detail=Detail.FIRST), View())


@keywords(LayoutPlan)
def plan(request: LayoutPlan) -> LayoutsResult:
    """List the layouts of a model that fit some GPUs, the one to try first.

    `model` is a name, such as "Qwen3-30B-A3B", or a configuration as `path` of `check_config`,
    whose own layout then stands among the others. `gpus`: how many, by default the configuration's;
    the model of GPU is `about`'s "gpu", or the configuration's. `seq_length` and `global_batch`
    replace the configuration's. `about` and `redact` are as for `analyze`.

    Raises `UsageError` for a model that is unknown and for GPUs that nothing divides, `InputError`
    for a file that cannot be used.
    """
    from diagnoser.running.layouts import plan_layouts

    return plan_layouts(request)
