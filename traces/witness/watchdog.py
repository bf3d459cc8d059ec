"""What a training log says of a hang: lines of PyTorch's watchdog (ProcessGroupNCCL.cpp) -> `Hang`.

A line is of a rank that gave up waiting. Who did not arrive is known only where the group has all
ranks, their number is known, and all the others gave up as well.
"""

from traces.limits import MOST_RANKS
from traces.missing import gap
from traces.names.process_groups import EVERYBODY, known_group, operation_named, settings_of
from traces.sections.hang import Hang, HangKind, WitnessSource
from traces.settings.settings import KnobView, Settings
from traces.texts import Texts
from traces.training_log.log import Message, TrainingLog

TIMEOUT = "collective-timeout"
"""The line's id in `known_lines.toml`."""
_WHO = gap(
    "the log names the ranks that waited, not the one that did not arrive",
    "give the dumps of PyTorch's Flight Recorder (TORCH_FR_BUFFER_SIZE=2000): --witness FILE",
)
_UNNUMBERED = gap(
    "the line has no sequence number", "give the dumps of the Flight Recorder: --witness FILE"
)


def hang_of_log(log: TrainingLog) -> Hang | None:
    """The collective that most ranks gave up in, of equals the first; None where no rank gave
    up.
    """
    lines = [line for line in log.messages if line.id == TIMEOUT and "operation" in line.said]
    if not lines:
        return None
    alike: dict[Texts, list[Message]] = {}
    for timeout in lines:
        alike.setdefault(_call_of(timeout), []).append(timeout)
    largest = max(alike.values(), key=len)
    operation, sequence, group = _call_of(largest[0])
    ranks = tuple(sorted({int(line.said["rank"]) for line in largest if "rank" in line.said}))
    world = KnobView(log.settings or Settings()).count("world_size")
    gone = tuple(sorted({*range(world)} - {*ranks})) if world and world <= MOST_RANKS.value else ()
    is_told = known_group(group) == EVERYBODY and len(ranks) > len(gone) > 0
    return Hang(
        kind=HangKind.MISSING_RANK if is_told else HangKind.TIMEOUT,
        source=WitnessSource.LOG,
        group=known_group(group) or "",
        operation=operation,
        sequence=int(sequence) if sequence else _UNNUMBERED,
        ranks_missing=gone if is_told else _WHO,
        ranks_entered=ranks,
        group_size=world if is_told else None,
        settings=settings_of(group),
    )


def _call_of(line: Message) -> tuple[str, str, str]:
    said = line.said
    return operation_named(said["operation"]), said.get("sequence", ""), said.get("group", "")
