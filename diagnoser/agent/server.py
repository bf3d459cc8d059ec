"""The server of `moe-diag mcp`: tools over standard input and output, by the official `mcp` package."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final

from diagnoser.agent.answers import Tools, said_as
from diagnoser.version import VERSION
from traces.errors import InputError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

SKILL: Final = Path(__file__).with_name("SKILL.md")


class NoMcp(InputError):
    """The extra `[agent]` is not installed."""


def skill() -> str:
    """Which tool is for what: a file to give to a program, and what the server says of itself."""
    return SKILL.read_text(encoding="utf-8")


def server(tools: Tools) -> "MCPServer":
    """Raises `NoMcp` without the package."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise NoMcp(
            "moe-diag mcp needs the package mcp, 2.3 or newer. Type pip install 'moe-diag[agent]'"
        ) from None

    def answering(tool: Callable[..., str]) -> Callable[..., str]:
        @wraps(tool)
        def called(*args: object, **kwargs: object) -> str:
            with said_as(ToolError):
                return tool(*args, **kwargs)

        return called

    about = skill().partition("---\n")[2].partition("---\n")[2]
    made = MCPServer("moe-diag", version=VERSION, instructions=about.strip(), log_level="WARNING")
    for tool in tools.all():
        made.add_tool(answering(tool), structured_output=False)
    return made


def serve(tools: Tools) -> None:
    """Answer until standard input ends."""
    server(tools).run("stdio")
