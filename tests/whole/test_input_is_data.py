"""No input of ours is ever run: our source calls nothing that could, but for the few places named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.places import ROOT

PACKAGES: Final = ("traces", "heuristics", "reports", "diagnoser", "moe_diag")
FORBIDDEN: Final[Mapping[str, str]] = {
    "eval": "runs a text", "exec": "runs a text", "compile": "makes code of a text",
    "__import__": "loads code by name", "breakpoint": "waits for somebody", "os.system": "a shell",
    "os.popen": "a shell", "subprocess.getoutput": "a shell", "subprocess.getstatusoutput": "a shell",
    "pickle.load": "runs what a pickle holds", "pickle.loads": "runs what a pickle holds",
    "pickle.Unpickler": "runs what a pickle holds", "marshal.loads": "makes code of bytes",
    "marshal.load": "makes code of bytes", "shelve.open": "holds pickles", "numpy.load": "may hold pickles",
    "np.load": "may hold pickles", "pandas.read_pickle": "is a pickle", "pd.read_pickle": "is a pickle",
    "torch.load": "may hold pickles", "yaml.load": "builds objects, unless its loader is safe",
    "yaml.load_all": "builds objects, unless its loader is safe", "yaml.unsafe_load": "builds objects",
    "yaml.full_load": "builds objects", "runpy.run_path": "runs a file", "runpy.run_module": "runs a file",
    "importlib.util.spec_from_file_location": "loads code from a path",
    "tempfile.mktemp": "a name that another may take first",
}  # fmt: skip
"""Calls, by the names they are written with."""
ANYWHERE: Final = frozenset({"enable_load_extension", "load_extension", "read_pickle"})
"""Methods, whatever they are called on."""
NETWORK: Final = frozenset(
    {"socket", "ssl", "urllib.request", "http", "ftplib", "smtplib", "requests", "httpx", "xmlrpc"}
)
LOADERS: Final = frozenset(
    {"Loader", "FullLoader", "UnsafeLoader", "CLoader", "CFullLoader", "CUnsafeLoader"}
)

MAY: Final[Mapping[str, frozenset[str]]] = {
    # moe-diag open: listens on 127.0.0.1 until the browser's tab has the trace
    "diagnoser/output/handover.py": frozenset(
        {"http.server.BaseHTTPRequestHandler", "http.server.ThreadingHTTPServer"}
    ),
    # to and from the workers of the scheduler that the user names, who is trusted with it
    "diagnoser/running/work/cluster.py": frozenset({"pickle.loads"}),
}
"""File -> what it may call all the same."""
STARTS: Final = frozenset(
    {
        "traces/formats/nsys_tool.py",  # the user's nsys
        "diagnoser/megatron/__init__.py",  # our own program, which asks megatron-core
    }
)
"""The only files that start programs."""


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def dangers(text: str) -> Iterator[str]:
    """What in a source could run input, by the name it is called with."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = [f"{node.module}."] if isinstance(node, ast.ImportFrom) else [""]
            for name in (base[0] + alias.name for alias in node.names):
                if name in FORBIDDEN and isinstance(node, ast.ImportFrom):
                    yield name
                if any(f"{name}.".startswith(f"{one}.") for one in NETWORK):
                    yield name
        elif isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node)
            if name in FORBIDDEN or name.startswith("subprocess."):
                yield name
            if isinstance(node, ast.Attribute) and node.attr in ANYWHERE:
                yield node.attr
            if name.startswith("yaml.") and name.removeprefix("yaml.") in LOADERS:
                yield name
        elif isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle"):
            yield node.arg


def test_nothing_runs_what_it_reads() -> None:
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        found = set(dangers(path.read_text(encoding="utf-8")))
        starts = {name for name in found if name.startswith("subprocess.")}
        assert found - starts - MAY.get(place, frozenset()) == set(), place
        assert not starts or place in STARTS, place


def test_each_exception_is_still_needed() -> None:
    for place, allowed in MAY.items():
        assert allowed <= set(dangers((ROOT / place).read_text(encoding="utf-8"))), place
    for place in STARTS:
        found = dangers((ROOT / place).read_text(encoding="utf-8"))
        assert any(name.startswith("subprocess.") for name in found), place


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')", "f = exec", "import subprocess\nsubprocess.run('ls', shell=True)",
        "from os import system", "pickle.loads(data)", "yaml.load(text, Loader=yaml.SafeLoader)",
        "yaml.compose(text, Loader=yaml.Loader)", "db.enable_load_extension(True)",
        "np.load(path, allow_pickle=True)", "import urllib.request", "from socket import socket",
    ],
)  # fmt: skip
def test_the_search_finds_each_danger(text: str) -> None:
    assert set(dangers(text))
