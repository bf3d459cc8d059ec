"""The user's own nsys: where it is and which version."""

import glob
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from traces.errors import NsysUnavailable
from traces.formats.nsys_process import Ended, TookTooLong, run_watched
from traces.limits import Limit

_INSTALLED: Final = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/target-linux-x64/nsys",
    "/usr/local/cuda*/bin/nsys",
)
_VERSION: Final = re.compile(r"\b(20\d\d(?:\.\d{1,6})+)\S*")
ANSWER_LIMIT: Final = Limit(30, "seconds", "ours: 0.05 s measured, and a network disk may be slow")


@dataclass(frozen=True, slots=True)
class Nsys:
    """One nsys: its path, its version as numbers (2022, 4, 2, 1) and as it tells it, `2022.4.2.1-df9881f`."""

    path: Path
    version: tuple[int, ...]
    text: str

    @property
    def release(self) -> str:
        """Version as people know it: `2022.4.2`."""
        return ".".join(map(str, self.version[:3]))


def find_nsys(explicit: str | None) -> Nsys:
    """Find nsys: `explicit` (the program or its folder), else `$NSYS`, PATH, then the usual install folders.

    Raises `NsysUnavailable` where there is none, or where the one given or in `$NSYS` does not work: another
    one than the user named is never taken.
    """
    if explicit is not None:
        return _named("--nsys", explicit)
    if from_environment := os.environ.get("NSYS"):
        return _named("NSYS in the environment", from_environment)
    for path in _candidates():
        if nsys := _ask_version(path):
            return nsys
    raise NsysUnavailable(
        "no nsys on PATH or in its usual folders. "
        "Install NVIDIA Nsight Systems, or give the path of nsys with --nsys PATH."
    )


def exports_with(nsys: Nsys, option: str) -> bool:
    """Whether its `nsys export` has an option; where it does not answer, it has not."""
    answer = _answer(nsys.path, "export", "--help")
    return answer is not None and option in answer.output


def _named(source: str, given: str) -> Nsys:
    """The one nsys the user named, or an error that repeats what was typed."""
    folder = Path(given)
    choices = [str(folder / "nsys"), str(folder / "bin" / "nsys")] if folder.is_dir() else [given]
    path = next((found for choice in choices if (found := shutil.which(choice))), None)
    if path is None:
        raise NsysUnavailable(f"{source} names {given}, where no nsys that can be run is. Check the path.")
    nsys = _ask_version(Path(path).absolute())
    if nsys is None:
        raise NsysUnavailable(f"{source} names {given}, which is no nsys version. Try: {path} --version")
    return nsys


def _candidates() -> list[Path]:
    """Every nsys of this machine that can be run: that of PATH, then the installed ones, newest first."""
    on_path = shutil.which("nsys")
    installed = [path for pattern in _INSTALLED for path in glob.glob(pattern) if os.access(path, os.X_OK)]  # noqa: PTH207 - absolute patterns
    installed.sort(key=_version_in_path, reverse=True)
    return [Path(path).absolute() for path in ([on_path] if on_path else []) + installed]


def _version_in_path(path: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", path)
    return tuple(map(int, found[0].split("."))) if found else ()


def _answer(path: Path, *words: str) -> Ended | None:
    """How a program ended that answers at once; None where it does not start or end."""
    try:
        return run_watched([str(path), *words], ANSWER_LIMIT.value, lambda: None)
    except (OSError, TookTooLong):
        return None


def _ask_version(path: Path) -> Nsys | None:
    answer = _answer(path, "--version")
    found = _VERSION.search(answer.output) if answer else None
    if answer is None or answer.code != 0 or found is None:
        return None
    return Nsys(path, tuple(map(int, found[1].split("."))), found[0])
