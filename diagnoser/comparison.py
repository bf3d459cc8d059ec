"""The post-mortem on one screen: read both sides, compare, write down."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from diagnoser.command_line import Value, command_line
from diagnoser.comparison_result import ComparisonResult
from diagnoser.side import Reading, Side, read_sides
from diagnoser.version import VERSION
from heuristics.comparison.comparison import compare
from heuristics.comparison.expected import Prediction
from traces.progress import Progress, silent


def compare_sides(
    base: Side,
    new: Side,
    reading: Reading | None = None,
    gate_frac: float | None = None,
    expected: Sequence[Prediction] = (),
    progress: Progress = silent,
) -> ComparisonResult:
    """Compare two runs; see `diagnoser.compare` for what it raises. `gate_frac`: 0.03 for a gate of 3 %.

    `expected`: what fixes of the new side are to gain.
    """
    reading = reading or Reading()
    results = read_sides(base, new, reading, progress)
    progress("comparing", None)
    files = [side.file(result) for side, result in zip((base, new), results, strict=True)]
    found = compare(*results, (base.gpu, new.gpu), gate_frac, expected)
    command = command_line(
        "compare",
        files[1:] if base.baseline else files,
        _options(base, new, reading),
        reading.about,
        reading.redact,
    )
    result = replace(
        found,
        tool=replace(found.tool, version=VERSION),
        warnings=tuple(
            f"{side}: {warning}"
            for side, result in zip(("base", "new"), results, strict=True)
            for warning in result.warnings
        ),
        redacted=reading.redact,
        command=command,
    )
    return ComparisonResult(result)


def _options(base: Side, new: Side, reading: Reading) -> Mapping[str, Value]:
    return {
        "--baseline": base.baseline,
        **reading.typed,
        "--base-gpu": base.gpu,
        "--new-gpu": new.gpu,
        "--base-config": base.config,
        "--new-config": new.config,
        "--base-log": base.log,
        "--new-log": new.log,
    }
