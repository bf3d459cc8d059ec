"""Each call of a tool in a process of its own, which is bounded in time and memory and can be
ended.

It is forked from a process that has all imported and does nothing else, so that it starts at once.
It works in the root and opens nothing outside. Whatever becomes of it, there is an answer, and the
server goes on.
"""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from diagnoser.agent.answers import Answer, Tools, answered, refusal
from diagnoser.agent.arguments import arguments_of
from diagnoser.agent.bounds import Bounds, bound_memory, enter
from diagnoser.running.work.processes import PATIENCE
from traces.errors import MoeDiagError, UsageError, out_of_memory
from traces.files.beneath import only_beneath
from traces.limits import MESSAGE, Limit
from traces.spelling import printable

AT_ONCE: Final = Limit(2, "calls", "ours: each may take all the memory of a call")
_IMPORTED: Final = (
    "diagnoser.api",
    "diagnoser.agent.answers",
    "numpy.random",
    "diagnoser.running.layouts",
    "heuristics.comparison.files.comparison",
    "heuristics.judging.checked",
    "heuristics.layouts.choose",
    "reports.content.analysis.check",
    "reports.content.comparison",
    "reports.content.explain.page",
    "reports.content.layouts",
    "reports.write.text",
)
"""What calls need, with all that these import, so that none has to import it."""


class Calls:
    """Answers of tools, each made by a process of its own."""

    def __init__(self, tools: Tools, bounds: Bounds) -> None:
        self._bounds, self._folder = bounds, tools.folder
        self._tools = {tool.__name__: tool for tool in tools.all()}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*_IMPORTED])
        self._room = anyio.Semaphore(AT_ONCE.whole)

    async def answer(self, name: str, given: Mapping[str, Any]) -> Answer:
        """The answer of a tool, or in one line why there is none."""
        try:
            if (tool := self._tools.get(name)) is None:
                known = ", ".join(self._tools)
                raise UsageError(f"no tool is named {printable(name, 40)!r}. There are {known}.")
            taken = arguments_of(tool, given)
        except MoeDiagError as error:
            return refusal(str(error))
        async with self._room:
            return await self._by_a_process(name, taken)

    async def _by_a_process(self, name: str, taken: dict[str, Any]) -> Answer:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(theirs, self._folder, self._bounds, name, taken)
        )
        try:
            await anyio.to_thread.run_sync(process.start)
            theirs.close()
            with anyio.move_on_after(self._bounds.time_s):
                await anyio.wait_readable(ours.fileno())
                return _received(ours)
            return refusal(
                f"not finished within {self._bounds.time_s:.0f} s; nothing unfinished was left "
                f"behind. "
                "Give fewer recordings, or have a person type the command: it has no such bound."
            )
        except OSError as error:
            return refusal(f"no process can be started for the call ({error.strerror}). Try again.")
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_end, process)
            ours.close()


def start() -> None:
    """Have the process that calls are forked from import all, while the client is still greeted."""
    forkserver.ensure_running()


def _received(pipe: Connection) -> Answer:
    try:
        return msgspec.json.decode(pipe.recv_bytes(2 * MESSAGE.whole), type=Answer)
    except (EOFError, OSError):
        return refusal(
            "the process of this call was ended from outside, perhaps because memory ran out. "
            "Give fewer recordings."
        )


def _end(process: BaseProcess) -> None:
    """Have a process ended with all in its session: asked to first, where it still works."""
    if process.pid is None:
        return
    process.join(0.1)
    process.terminate()
    process.join(PATIENCE.value)
    with suppress(OSError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()


def _work(
    pipe: Connection, folder: Path | None, bounds: Bounds, name: str, taken: dict[str, Any]
) -> None:
    os.setsid()  # Ctrl-C and a terminal that goes away are the server's
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt, OSError):
        answer = answered(partial(_bounded, folder, bounds, name, taken))
        pipe.send_bytes(msgspec.json.encode(answer))


def _bounded(folder: Path | None, bounds: Bounds, name: str, taken: dict[str, Any]) -> str:
    kept_in = Tools(folder).kept_in()
    enter(bounds)
    bound_memory(bounds)
    no_memory = out_of_memory("the call")  # made while there is memory for it
    try:
        with only_beneath(Path(), kept_in):
            answer: str = getattr(Tools(kept_in), name)(**taken)
            return answer
    except MemoryError:
        raise no_memory from None
