"""What an exception says of a configuration: that megatron-core refuses it, or nothing, since
asking failed.

It refuses by an assertion or a ValueError that its own code raises from what it was given. All else
is a fault of what asks, or of what is installed here: another type, another place (PyTorch, the
enums of Python, our code), modules as they are imported, and process groups, which are set up here.
"""

import traceback
from typing import Final

from traces.frozen import frozen

_SET_UP_HERE: Final = ("megatron.core.parallel_state", "megatron.core.process_groups_config")


@frozen
class Raised:
    """`statement`: the line of source that raised it. `place`: the last line of ours, and that
    one.
    """

    refuses: bool
    error: str
    message: str
    statement: str
    place: str


def raised(error: Exception) -> Raised:
    steps = list(traceback.walk_tb(error.__traceback__))
    modules, own, is_import = [], 0, False
    for at, (frame, _) in enumerate(steps):
        modules.append(str(frame.f_globals.get("__name__")))
        is_import |= frame.f_code.co_name == "<module>"
        if modules[at].partition(".")[0] in ("diagnoser", "heuristics", "traces"):
            own, is_import = at, False
    of_core = modules[-1].partition(".")[0] == "megatron" and modules[-1] not in _SET_UP_HERE
    return Raised(
        refuses=isinstance(error, AssertionError | ValueError) and of_core and not is_import,
        error=type(error).__name__,
        message=str(error),
        statement=traceback.extract_tb(error.__traceback__)[-1].line or "",
        place=", in ".join(
            f"{modules[at]} line {steps[at][1]}" for at in sorted({own, len(steps) - 1})
        ),
    )
