"""Document -> Result, checked on the way. The only reader of our own documents besides that of symptoms."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from traces.errors import NotAResult, TraceNotFound
from traces.formats.known_texts import trace_name
from traces.results.fields import Node
from traces.results.result import (
    Configuration,
    Group,
    Kernel,
    LayerRow,
    Log,
    Rank,
    Result,
    Row,
    Steps,
    Trace,
    Value,
)

KNOWN_MAJOR: Final = 1
"""Documents of version 1.x can be read: keys may be added to it, none may change."""
_TIME: Final = range(2**63)


def is_result(path: Path) -> bool:
    """Whether a file begins as our own document does; False where it cannot be read."""
    try:
        with _open(path) as file:
            return b'"schema_version"' in file.read(400)
    except (OSError, EOFError, zlib.error):
        return False


def read_result(path: Path) -> tuple[Result, dict[str, Any]]:
    """An earlier result and its document. Raises `NotAResult`, or `TraceNotFound` where it cannot be read."""
    try:
        with _open(path) as file:
            document = json.loads(file.read())
    except (ValueError, RecursionError, EOFError, zlib.error, gzip.BadGzipFile):
        raise NotAResult(f"{path} is no whole JSON. Make the result again: moe-diag analyze") from None
    except OSError as error:
        raise TraceNotFound(f"{path} cannot be read ({error.strerror}). Name an earlier result.") from None
    try:
        return result_of(document), document
    except NotAResult as error:
        raise NotAResult(f"{trace_name(path)}: {error}") from None


def _open(path: Path) -> Any:
    return gzip.open(path) if path.name.endswith(".gz") else path.open("rb")


def result_of(document: Any) -> Result:
    """A document as facts. Raises `NotAResult` for what is none, or is of a newer version than we know."""
    root = Node(document)
    if not isinstance(document, dict) or "schema_version" not in document:
        root.wrong("is no result of moe-diag")
    version = root.under("schema_version").text()
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) != KNOWN_MAJOR:
        shown = "".join(one for one in version[:12] if one in "0123456789.")
        raise NotAResult(
            f"its schema_version is {shown or 'no number'}; this moe-diag reads 1.x. "
            "Update moe-diag (pip install --upgrade moe-diag), or make the result again"
        )
    if "verdict" in document and not isinstance(document["verdict"], dict):
        raise NotAResult("it is no diagnosis of one run but a comparison. Give one of the runs it compares")
    tool = root.under("tool")
    return Result(
        tool_version=tool.under("version").text(),
        guidance=tool.under("guidance").text(),
        traces=tuple(_trace(one) for one in root.under("traces").each()),
        ranks=tuple(_rank(one) for one in root.under("ranks").each()),
        verdict=root.under("verdict").mapping(),
        walls=tuple(one.mapping() for one in root.under("walls").each()),
        fixes=tuple(one.mapping() for one in root.under("fixes").each()),
        given={key: _plain(value) for key, value in root.under("given").mapping().items()},
        configuration=_configuration(root.under("configuration")),
        log=_log(root.under("log")),
        throughput=root.under("throughput").mapping() or None,
        config_findings=tuple(one.mapping() for one in root.under("config_findings").each()),
        warnings=root.under("warnings").texts(),
        redacted=root.under("redacted").value is not False,
    )


def _plain(value: Any) -> Value:
    return tuple(_plain(one) for one in value) if isinstance(value, list) else cast("Value", value)


def _text(node: Node) -> str | None:
    return node.text() if node.told else None


def _trace(node: Node) -> Trace:
    capture = node.under("capture")
    perturbed = capture.under("perturbation_frac")
    return Trace(
        name=node.under("name").text(),
        kind=node.under("kind").text(),
        exporter_version=_text(node.under("exporter_version")),
        schema=_text(node.under("schema")),
        gpus=tuple(_text(gpu.under("name")) for gpu in node.under("gpus").each()),
        missing_tables=node.under("missing_tables").texts(),
        diagnostics=capture.under("diagnostics").texts(),
        perturbation_frac=perturbed.number() if perturbed.told else None,
    )


def _rank(node: Node) -> Rank:
    budget = node.under("budget_ns")
    ledger, table, moe = node.under("ledger"), node.under("kernel_table"), node.under("moe")
    window_ns = budget.under("window").length_ns()
    steps = _steps(node.under("steps"), window_ns)
    rows = tuple(_row(one, steps) for one in ledger.each()) if ledger.told else None
    if rows is not None and _budget_per_step_ns(rows) != list(steps.lengths_ns):
        ledger.wrong("does not add up to the steps")
    left_out = table.under("left_out").under("rows")
    return Rank(
        trace=node.under("trace").text(),
        process=node.under("process").value,
        device=node.under("device").integer(),
        gpu=_text(node.under("gpu")),
        rank=node.under("rank").value,
        steps=steps,
        window_ns=window_ns,
        budget_ns={key: value for key, value in budget.mapping().items() if key != "window"},
        ledger=rows,
        layers=tuple(_layer(one) for one in moe.under("by_layer").each()) if moe.told else None,
        kernels=tuple(_kernel(one) for one in table.under("rows").each()) if table.told else None,
        kernels_left_out=left_out.length_ns() if left_out.told else 0,
        totals=node.under("totals").mapping() or None,
        clock_offset_ns=node.under("clock_offset_ns").value,
        detected=node.under("detected").mapping(),
        memory=node.under("memory").mapping(),
        sm=node.under("sm").mapping(),
        absent_ns=node.under("absent_ns").mapping() or None,
        a2a=node.under("a2a").mapping() or None,
        moe=moe.mapping() or None,
        timeline=_timeline(node.under("timeline")),
    )


def _timeline(node: Node) -> Mapping[str, Any] | None:
    """The section as it stands; its columns are of one length and point at what is there."""
    if not node.told:
        return None
    for key in ("start_ns", "end_ns"):
        node.under(key).integer()
    node.under("left_out").length_ns()
    keys, names = (len(node.under(key).texts()) for key in ("keys", "names"))
    for lane in node.under("lanes").each():
        lane.under("stream").integer()
        _columns(lane, {"at_ns": _TIME, "length_ns": _TIME, "key": range(keys), "name": range(-1, names)})
    if (reasons := node.under("reasons")).told:
        seen = len(reasons.under("reasons").texts())
        _columns(reasons, {"at_ns": _TIME, "length_ns": _TIME, "reason": range(seen)})
    return node.mapping()


def _columns(node: Node, allowed: Mapping[str, range]) -> None:
    lists = [node.under(key).value for key in allowed]
    if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1:
        node.wrong(f"is to have {', '.join(allowed)} as lists of one length")
    for key, values in zip(allowed, lists, strict=True):
        if not all(type(one) is int and one in allowed[key] for one in values):
            node.under(key).wrong("has an entry that is no time, or points at nothing")


def _steps(node: Node, window_ns: int) -> Steps:
    used = [
        one.under("end_ns").integer() - one.under("start_ns").integer() for one in node.under("used").each()
    ]
    return Steps(
        source=node.under("source").text() if used else "none",
        what=_text(node.under("what")) or "",
        lengths_ns=tuple(used) or (window_ns,),
        dropped=tuple(one.under("reason").text() for one in node.under("dropped").each()),
        slow=node.under("slow").lengths_ns(),
    )


def _row(node: Node, steps: Steps) -> Row:
    group = node.under("group").text()
    if group not in get_args(Group):
        node.under("group").wrong(f"is to be one of {', '.join(get_args(Group))}")
    work, per_step_ns = node.under("work_ns"), node.under("per_step_ns").lengths_ns()
    if len(per_step_ns) != len(steps.lengths_ns):
        node.under("per_step_ns").wrong(f"is to have {len(steps.lengths_ns)} entries, one per used step")
    return Row(
        row=node.under("row").text(),
        group=cast("Group", group),
        wall=_text(node.under("wall")),
        count=node.under("count").length_ns(),
        work_ns=work.length_ns() if work.told else None,
        per_step_ns=per_step_ns,
    )


def _budget_per_step_ns(rows: tuple[Row, ...]) -> list[int]:
    return [
        sum(step) for step in zip(*(row.per_step_ns for row in rows if row.group == "budget"), strict=True)
    ]


def _layer(node: Node) -> LayerRow:
    whole = {key: node.under(key).length_ns() for key in ("layer", "count", "work_ns", "wall_ns")}
    return LayerRow(module=node.under("module").text(), pass_=node.under("pass").text(), **whole)


def _kernel(node: Node) -> Kernel:
    grid = node.under("grid")
    blocks = grid.lengths_ns() if grid.told else None
    if blocks is not None and len(blocks) != 3:
        grid.wrong("is to have three sizes")
    whole = {key: node.under(key).length_ns() for key in ("count", "work_ns", "std_ns")}
    name, key = node.under("name").text(), node.under("key").text()
    return Kernel(name, blocks, key, **whole)


def _configuration(node: Node) -> Configuration | None:
    if not node.told:
        return None
    listed = [one.mapping() for one in node.under("settings").each()]
    told = [one for one in listed if not one.get("withheld")]
    return Configuration(
        framework=_text(node.under("framework")),
        legal=node.under("legal").value,
        settings={str(one.get("knob")): _plain(one.get("value")) for one in told},
        said={str(one.get("knob")): str(one.get("said")) for one in listed},
        withheld=frozenset(str(one.get("knob")) for one in listed if one.get("withheld")),
        versions=_versions(node.under("versions").mapping()),
    )


def _log(node: Node) -> Log | None:
    if not node.told:
        return None
    return Log(
        name=node.under("name").text(),
        iterations_ns=node.under("iterations_ns").lengths_ns(),
        versions=_versions(node.under("versions").mapping()),
        values=node.mapping(),
    )


def _versions(said: Mapping[str, Any]) -> dict[str, str]:
    return {package: version for package, version in said.items() if isinstance(version, str)}
