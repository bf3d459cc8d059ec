"""The server of `moe-diag mcp`: tools over standard input and output, by the official `mcp`
package.
"""

import logging
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from diagnoser.agent.answers import Tools
from diagnoser.agent.arguments import schema_of
from diagnoser.version import VERSION
from traces.errors import InputError
from traces.patterns import compiled

if TYPE_CHECKING:
    from diagnoser.agent.bounds import Bounds
    from diagnoser.agent.calls import Calls

SKILL: Final = Path(__file__).with_name("SKILL.md")
_FIRST_ID: Final = compiled(
    r'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"]{0,100}"\s*,\s*)*"id"\s*:\s*(\d{1,15})\b'
)
_LAST_ID: Final = compiled(r'"id"\s*:\s*(\d{1,15})\s*\}\s*$')
"""Where clients write the number of a request: before what it asks for, or after it."""
_TAIL: Final = 100
_NO_JSON: Final = (
    "this is no JSON that can be read: numbers have at most 4,000 digits, lists are nested less "
    "than 200 deep, and texts have whole characters. Ask again with other arguments."
)


class NoMcp(InputError):
    """The extra `[agent]` is not installed."""


def skill() -> str:
    """Which tool is for what: a file to give to a program, and what the server says of itself."""
    return SKILL.read_text(encoding="utf-8")


def server(tools: Tools, calls: "Calls") -> Any:
    """Of the package's own kind that hands over names and arguments as they come."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    offered = [
        types.Tool(
            name=tool.__name__,
            description=cleandoc(tool.__doc__ or ""),
            input_schema=schema_of(tool),
        )
        for tool in tools.all()
    ]

    async def list_tools(context: Any, request: Any) -> Any:
        return types.ListToolsResult(tools=offered)

    async def call_tool(context: Any, request: Any) -> Any:
        answer = await calls.answer(request.name, request.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], is_error=answer.is_error
        )

    return Server(
        "moe-diag",
        version=VERSION,
        instructions=skill().partition("---\n")[2].partition("---\n")[2].strip(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(tools: Tools, bounds: "Bounds") -> None:
    """Answer until standard input ends. Raises `NoMcp` without the package."""
    try:
        import anyio
        import mcp.server.mcpserver  # noqa: F401 - which 2.0 brought
    except ImportError:
        raise NoMcp(
            "moe-diag mcp needs the package mcp, 2.3 or newer. Type pip install 'moe-diag[agent]'"
        ) from None
    from diagnoser.agent.calls import Calls, start

    logging.disable()  # what matters is answered
    calls = Calls(tools, bounds)
    start()
    anyio.run(_serve, tools, calls)


async def _serve(tools: Tools, calls: "Calls") -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    made = server(tools, calls)
    into, messages = anyio.create_memory_object_stream[Any](0)
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on, read, write, into)
        await made.run(messages, write, made.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _pass_on(read: Any, write: Any, into: Any) -> None:
    """Messages as they are read; what is no JSON is answered here, as the package drops it."""
    async with into:
        async for message in read:
            if isinstance(message, Exception):
                await _refuse(_line_of(message), write)
            else:
                await into.send(message)


async def _refuse(line: str, write: Any) -> None:
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    if (number := number_of(line)) is not None:
        error = types.ErrorData(code=types.PARSE_ERROR, message=_NO_JSON)
        await write.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=number, error=error)))


def number_of(line: str) -> int | None:
    """The number of a request that cannot be read as a whole; None where it is not found."""
    match = _FIRST_ID.match(line) or _LAST_ID.search(line[-_TAIL:])
    if match:
        return int(match[1])
    return None


def _line_of(error: Exception) -> str:
    """What was read, as the package keeps it beside what is wrong; empty where it does not."""
    try:
        return str(error.errors()[0]["input"])  # type: ignore[attr-defined]
    except (AttributeError, LookupError, TypeError, ValueError):
        return ""
