"""The public API of moe-diag.

    import diagnoser
    diagnosis = diagnoser.analyze(["run.nsys-rep"], config="run.yaml", log="train.log")
    diagnosis.result        # typed: diagnosis.result.verdict.wall, diagnosis.result.ranks[0].budget_ns.idle
    diagnosis.to_dict()     # the JSON document, version 1.0
    diagnosis.to_frame()    # pandas: one row per rank and bucket, kind or class

    checked = diagnoser.check_config("run.yaml", about={"core_version": "0.16.1"})
    checked.to_dict()["configuration"]["legal"]

    compared = diagnoser.compare("before.json", "after.nsys-rep", gate="3%")
    compared.to_dict()["verdict"], compared.to_frame(), compared.gate.state

Importing this package loads neither numpy nor pandas; `analyze` and `compare` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from diagnoser.version import VERSION

if TYPE_CHECKING:
    from diagnoser.comparison_result import ComparisonResult
    from diagnoser.diagnosis import Diagnosis
    from diagnoser.side import Source
    from traces.formats.open import ReadOptions

__version__ = VERSION
__all__ = [
    "InputError",
    "MoeDiagError",
    "NothingToDiagnose",
    "UsageError",
    "analyze",
    "check_config",
    "compare",
]


_BEGINS: Final = {"traces": b'"""FACTS', "heuristics": b'"""OPINIONS', "reports": b'"""WORDS'}
"""How the first file of each of our packages begins, by which it is known."""


def _check_siblings() -> None:
    """Say clearly when a stranger's package of the same name shadows one of ours, or lies over it."""
    home = Path(__file__).resolve().parent.parent
    own = "Install moe-diag into an environment of its own (pipx install moe-diag)"
    for name, begins in _BEGINS.items():
        spec = find_spec(name)
        where = Path(spec.origin).resolve().parent if spec and spec.origin else None
        if where != home / name:
            raise ImportError(
                f"moe-diag needs its own package {name!r}, but Python finds {where or 'none'}. "
                f"{own}, or run it from a folder that has no {name}/."
            )
        if not (where / "__init__.py").read_bytes().startswith(begins):
            raise ImportError(
                f"another package {name!r} was installed over moe-diag's in {home}: "
                f"its __init__.py is not ours. {own}."
            )


_check_siblings()

from traces.errors import InputError, MoeDiagError, NothingToDiagnose, UsageError  # noqa: E402 - after the check
from traces.progress import Progress, silent  # noqa: E402 - likewise


def analyze(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    steps: str | None = None,
    nvtx: str | None = None,
    start: str | None = None,
    end: str | None = None,
    rank: int | None = None,
    gpu: int | None = None,
    nsys: str | None = None,
    cache_dir: str | PathLike[str] | None = None,
    reader: str = "auto",
    jobs: int | None = 1,
    ranks: str | PathLike[str] | None = None,
    scheduler: str | None = None,
    config: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    about: Mapping[str, object] | None = None,
    ask_megatron: bool = True,
    redact: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Diagnose one trace, or several of one run.

    `paths` are `.nsys-rep`, `.qdrep`, SQLite exports, or `.json[.gz]` of the PyTorch profiler, folders of
    them, or patterns; `ranks` is a CSV file of rank numbers (docs/ranks.md). `steps`, `nvtx`, `start`, `end`,
    `rank`, `gpu`, `nsys`, `cache_dir` and `reader` are as the options of the command. `jobs` traces are read
    at once (None: by cores), each in a process: a script then runs under `if __name__ == "__main__":`. With
    `scheduler`, the address of one of dask, its workers read them. `config` is the run's configuration: a
    YAML or overrides of Megatron-Bridge, a command or script of Megatron-LM; `log` the text that the run
    printed; `about` what neither tells: {"gpu": "H100", "ep": 16, "core_version": "0.16.1"}, by the fields of
    `run.Given` of heuristics. With `ask_megatron`, an installed megatron-core is asked about each change.

    The document names traces by their base names and withholds texts of the configuration that could be a
    path or a name; without `redact` it holds both. `progress` is called with what is done and its fraction.

    Raises `UsageError` for a selection or a map that cannot be, `InputError` for a file that cannot be used,
    `NothingToDiagnose` without GPU work; all are `MoeDiagError`. Beside others that can be used, a trace that
    cannot becomes a warning of the document.
    """
    from diagnoser.about import given_from
    from diagnoser.command_line import command_line
    from diagnoser.configuration import read_configured
    from diagnoser.megatron.asker import asker
    from diagnoser.pipeline import diagnose
    from traces.steps.selection import parse_selection

    several = [Path(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]
    given = given_from(about or {})
    configured = read_configured(_path(config), _path(log), given, progress)
    options = {
        **{"--steps": steps, "--nvtx": nvtx, "--start": start, "--end": end, "--rank": rank, "--gpu": gpu},
        **{"--ranks": _path(ranks), "--config": _path(config), "--log": _path(log)},
        **{"--no-megatron": not ask_megatron},
    }
    return diagnose(
        several,
        selection=parse_selection(steps, nvtx, start, end, rank, gpu),
        options=_reading(nsys, cache_dir, reader),
        given=given,
        configured=configured,
        ask=asker(ask_megatron and configured.has_files),
        jobs=jobs,
        rank_map=_path(ranks),
        scheduler=scheduler,
        progress=progress,
        redact=redact,
        command=command_line("analyze", several, options, about, redact),
    )


def check_config(
    path: str | PathLike[str],
    *,
    log: str | PathLike[str] | None = None,
    symptoms: str | PathLike[str] | None = None,
    about: Mapping[str, object] | None = None,
    ask_megatron: bool = True,
    redact: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Judge a configuration without a trace: is it legal, what does the workflow say, what to try.

    `path` is as `config` of `analyze`. `symptoms` is a JSON file of measurements by the document's names, or
    an earlier result: with it the walls are judged and a plan is made. The others are as for `analyze`.

    The document has the contract's keys, without traces and ranks; `configuration.legal` is the answer.
    Raises `InputError` for a file that cannot be used.
    """
    from diagnoser.about import given_from
    from diagnoser.check import check_config as check
    from diagnoser.command_line import command_line
    from diagnoser.megatron.asker import asker

    files = {"--log": _path(log), "--symptoms": _path(symptoms)}
    return check(
        Path(path),
        log=_path(log),
        symptoms=_path(symptoms),
        given=given_from(about or {}),
        ask=asker(ask_megatron),
        progress=progress,
        redact=redact,
        command=command_line(
            "check-config", [Path(path)], {**files, "--no-megatron": not ask_megatron}, about, redact
        ),
    )


def compare(
    base: str | PathLike[str] | Mapping[str, object] | Diagnosis,
    new: str | PathLike[str] | Mapping[str, object] | Diagnosis,
    *,
    base_gpu: int | None = None,
    new_gpu: int | None = None,
    base_config: str | PathLike[str] | None = None,
    new_config: str | PathLike[str] | None = None,
    base_log: str | PathLike[str] | None = None,
    new_log: str | PathLike[str] | None = None,
    steps: str | None = None,
    nvtx: str | None = None,
    nsys: str | None = None,
    cache_dir: str | PathLike[str] | None = None,
    reader: str = "auto",
    jobs: int | None = 1,
    about: Mapping[str, object] | None = None,
    gate: str | None = None,
    expect: Sequence[str] = (),
    redact: bool = True,
) -> ComparisonResult:
    """Compare two runs: is it really slower, by how much, where, and what changed that can explain it.

    `base` and `new` are each a trace, a folder or pattern of those of one run, or an earlier result by its
    path, a document (`to_dict()`), or a diagnosis. `jobs` is as for `analyze`. `base_gpu`, `new_gpu`: the
    CUDA device that is compared, the first rank's by default; with them one file may stand on both sides.
    Logs give the size of the difference without the profiler. `steps` and `nvtx` choose in both traces and
    are refused for earlier results; `about`, as for `analyze`, is said of both runs. `gate` is a limit such
    as "3%"; what it says is the `gate` of what comes back. `expect`: what fixes of the new side should gain
    of a step, such as "com-3=6ms". `redact` is as for `analyze`; with it a result made without it is refused.

    Raises what `analyze` does, and `InputError` for a document that is no result of ours or of a newer
    schema, `NothingToDiagnose` for one without a rank. Messages begin with "base: " or "new: ".
    """
    from diagnoser.comparison import compare_sides
    from diagnoser.expect import predictions
    from diagnoser.gate import gate_frac
    from diagnoser.side import Reading, Side
    from traces.steps.selection import parse_selection

    return compare_sides(
        Side("base", _source(base), base_gpu, _path(base_config), _path(base_log)),
        Side("new", _source(new), new_gpu, _path(new_config), _path(new_log)),
        Reading(
            parse_selection(steps, nvtx),
            _reading(nsys, cache_dir, reader),
            about or {},
            redact,
            {"--gate": gate, "--expect": tuple(expect), "--steps": steps, "--nvtx": nvtx},
            jobs,
        ),
        None if gate is None else gate_frac(gate),
        predictions(expect),
    )


def _reading(nsys: str | None, cache_dir: str | PathLike[str] | None, reader: str) -> ReadOptions:
    from traces.formats.open import ReadOptions
    from traces.formats.readers import reader_named

    return ReadOptions(nsys, _path(cache_dir), reader_named(reader))


def _source(given: str | PathLike[str] | Mapping[str, object] | Diagnosis) -> Source:
    return Path(given) if isinstance(given, str | PathLike) else given


def _path(given: str | PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given)
