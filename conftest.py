"""Shared fixtures, and the count of what was skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.places import DATA, Reviewed
from tests.read_back.browser import Browser, started

# `make test` draws the same examples everywhere; `make fuzz` draws new ones, and more, with every
# run. No deadlines: speed is not measured by tests.
settings.register_profile("test", max_examples=40, derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=500, deadline=None, print_blob=True)
settings.load_profile("test")


SLOW = frozenset((DATA / "slow_files.txt").read_text(encoding="utf-8").split())


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write a recording as an export and give its path."""

    def write(recording: Recording, name: str = "run.sqlite", **how: object) -> Path:
        path = tmp_path / name
        write_export(path, recording, **how)  # type: ignore[arg-type]
        return path

    return write


@pytest.fixture
def reviewed(request: pytest.FixtureRequest) -> Reviewed:
    """The reviewed text of a file; `--update-golden` first makes the new text it."""

    def read(path: Path, text: str) -> str:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        return path.read_text(encoding="utf-8")

    return read


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; without it a test skips, with it nothing of it may be
    missing.
    """
    folder = os.environ.get("MOE_DIAG_TRACES")
    if not folder:
        pytest.skip(
            "MOE_DIAG_TRACES is unset: would have shown the numbers of independent truth"
            " on real recordings"
        )
    return Path(folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's chromium, if there is one."""
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture(scope="session")
def real_nsys() -> str:
    """The nsys of this machine."""
    nsys = shutil.which("nsys")
    if nsys is None:
        pytest.skip(
            "no nsys on PATH: would have shown that real reports export and give their true totals"
        )
    return nsys


@pytest.fixture(scope="session")
def megatron() -> None:
    """The installed megatron-core and PyTorch."""
    if find_spec("megatron") is None or find_spec("torch") is None:
        if os.environ.get("MOE_DIAG_MEGATRON") == "required":
            pytest.fail(
                "megatron-core is not installed, and MOE_DIAG_MEGATRON=required says it must be"
            )
        pytest.skip("megatron-core is not installed: would have shown what it accepts and rejects")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the skipped tests would have shown, and count them."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons: dict[str, int] = {}
    for report in skipped:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} x {reason.removeprefix('Skipped: ')}")
    terminalreporter.write_line(f"{len(skipped)} tests skipped for want of a tool or a recording")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the reviewed texts; read the difference before you commit it."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out browsers, real recordings and tests/data/slow_files.txt",
    )


def pytest_configure(config: pytest.Config) -> None:
    """With `--quick`, nothing that lies outside of the repository is read."""
    if config.getoption("--quick"):
        for name in [one for one in os.environ if one.startswith("MOE_DIAG_")]:
            del os.environ[name]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick`, files that take seconds each."""
    return True if config.getoption("--quick") and collection_path.name in SLOW else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without tests that start a browser with `--quick`; kept documents, the longest, first."""
    if config.getoption("--quick"):
        items[:] = [one for one in items if "browser" not in getattr(one, "fixturenames", ())]
    items.sort(key=lambda one: "test_kept_" not in one.nodeid)
