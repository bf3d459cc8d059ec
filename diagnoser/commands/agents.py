"""The program as tools for other programs (`mcp`)."""

from pathlib import Path

from diagnoser.options.command import command
from diagnoser.output import check_place, show


@command()
def mcp(keep: Path | None = None, root: Path | None = None, skill: bool = False) -> None:
    """Tools for AI agents over MCP; needs moe-diag[agent].

    Answers on standard input and output until they close: analyze, compare, check_config, plan and
    explain. Each answer is below 4 kB and names the file of the whole result. No network; no input
    is changed, nothing outside the root is read, and a call ends after 300 s or at 8 GB.

    \b
    pip install 'moe-diag[agent]'
    moe-diag mcp --root recordings            the command that a client is to start
    moe-diag mcp --skill > SKILL.md           when to use which tool
    """
    from diagnoser.agent import server
    from diagnoser.agent.answers import Tools
    from diagnoser.agent.bounds import bounds_of

    if skill:
        show(server.skill())
        return
    if keep:
        check_place(keep, "--keep")
    server.serve(Tools(keep), bounds_of(root))
