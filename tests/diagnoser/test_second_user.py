"""Another user of the machine, a real one, who plants and races in folders that both may write into.

Whenever the first user's run is about to take a step on the disk, the other one acts. Nothing is gained: what
is the first user's alone stays as it is, and nothing comes into it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import pytest

from bench.faults.disturbed import STEPS
from diagnoser.cli import run
from tests.doubles.sides import as_json, result_of_run
from tests.doubles.writers import marked
from tests.hostile.attachments import NAMES, Seen, looked_at
from tests.recordings.nsys import Desk, desk

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="not root: would have shown that a second user of the machine gains nothing"
)
VICTIM, OTHER = 61_001, 61_002
SECRET: Final = b"what nobody else reads"


@dataclass(frozen=True)
class Place:
    """Two homes, and between them a folder that both may write into."""

    folder: Path
    nsys: Desk

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def own(self) -> Seen:
        """All that is the first user's, but what the program keeps for itself."""
        return looked_at(self.home, but=self.home / ".cache")

    def words(self, command: str) -> list[str]:
        result = str(self.home / "run.json")
        report = str(self.nsys.report)
        return {
            "ticket": ["report", result, "--ticket", f"{self.shared}", "--force-overwrite"],
            "new ticket": ["report", result, "--ticket", f"{self.shared}/new"],
            "files": f"report {result} -f json -f markdown -o {self.shared}/ --force-overwrite".split(),
            "summary": f"analyze {self.home}/run.sqlite --no-megatron --summary {self.shared}".split(),
            "history": ["history", "add", result, "--store", f"{self.shared}/h.sqlite"],
            "cache": ["doctor", report, "--nsys", self.nsys.nsys.path, "--cache-dir", f"{self.shared}/cache"],
        }[command]


COMMANDS: Final = ("ticket", "new ticket", "files", "summary", "history", "cache")


@pytest.fixture(scope="module")
def _imported() -> Iterator[None]:
    """Each command was run once: what is forked then imports nothing, as it may not read our packages."""
    with pytest.MonkeyPatch.context() as patched, _made(patched) as place:
        for command in COMMANDS:
            assert run(place.words(command)) in (0, 4), command
        yield


@pytest.fixture
def place(_imported: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with _made(monkeypatch) as made:
        for path in (made.home, *made.home.rglob("*"), *(made.folder / "nsys").rglob("*")):
            os.chown(path, VICTIM, VICTIM)
        made.home.chmod(0o711)  # so that the other may name what is in it, and no more
        for path in (made.home / ".ssh", made.home / "work"):
            path.chmod(0o700)
        made.folder.chmod(0o755)
        yield made


@contextmanager
def _made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    marked(monkeypatch)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "id_rsa").write_bytes(SECRET)
        (home / "work").mkdir()
        (home / "work" / "thesis.txt").write_bytes(SECRET)
        as_json(home / "run.json", result_of_run(home / "run.sqlite"))
        made = Place(Path(folder), desk(Path(folder) / "nsys"))
        made.shared.mkdir()
        yield made


def become(user: int, home: Path) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.environ["HOME"] = str(home)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "MOE_DIAG_HISTORY"):
        os.environ.pop(name, None)


def started(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = int(work() or 0)  # type: ignore[call-overload]
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def raced(place: Place, words: Sequence[str], act: Callable[[], None]) -> int:
    """Run a command as the first user; before each of its steps on the disk the other one acts."""
    (asked, ask), (answered, answer) = os.pipe(), os.pipe()

    def first() -> int:
        os.close(asked)
        os.close(answer)
        become(VICTIM, place.home)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event.startswith((*STEPS, "open")):
                os.write(ask, b".")
                os.read(answered, 1)

        silent = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silent, stream)
        signal.alarm(60)
        sys.addaudithook(hook)
        return run(list(words))

    def second() -> NoReturn:
        os.close(ask)
        os.close(answered)
        become(OTHER, place.folder)
        while os.read(asked, 1):
            with suppress(OSError, IndexError):  # there may be nothing to choose from
                act()
            os.write(answer, b".")
        os._exit(0)

    other, one = started(second), started(first)
    for end in (asked, ask, answered, answer):
        os.close(end)
    codes = ended(one), ended(other)
    assert codes[1] == 0
    return codes[0]


class Other:
    """What the second user does, drawn anew for each step."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place, self._draw = place, random.Random(seed)
        self._taken = 0

    def __call__(self) -> None:
        shared, ssh = self._place.shared, self._place.home / ".ssh"
        entries = [
            one for one in shared.iterdir() if one.name.startswith((".moe-diag-", "new", "cache", "h.sqlite"))
        ]
        match self._draw.randrange(6):
            case 0 if entries:  # take the run's own folder away, and put a way into the home there
                one = self._draw.choice(entries)
                self._taken += 1
                one.rename(shared / f"taken{self._taken}")
                one.symlink_to(
                    self._draw.choice([ssh, self._place.home / "work", shared / f"taken{self._taken}"])
                )
            case 1:  # give it back
                taken = [one for one in entries if one.is_symlink()]
                self._draw.choice(taken).unlink()
            case 2:
                name = self._draw.choice(
                    [*NAMES, "run_report.json", "run.rank", "run_moe-diag.md", "new", "cache"]
                )
                (shared / name).unlink(missing_ok=True)
                (shared / name).symlink_to(self._draw.choice([ssh, ssh / "id_rsa", ssh / "made"]))
            case 3:
                ending = self._draw.choice(["", "-journal", "-wal", "-shm"])
                (shared / f"h.sqlite{ending}").symlink_to(ssh / "id_rsa")
            case 4:
                left = (
                    shared
                    / f".moe-diag-{self._draw.randrange(16**8):08x}-{self._draw.randrange(16**16):016x}"
                )
                left.mkdir(mode=0o700)
                (left / "replaced").symlink_to(ssh)
                (left / "made").symlink_to(shared)
                (left / "moves").write_text('{"last": "a", "made": {}, "replaced": {}}', encoding="utf-8")
            case _:
                for one in entries:
                    shutil.rmtree(one)


@pytest.mark.parametrize("mode", [0o1777, 0o777], ids=["sticky", "not sticky"])
@pytest.mark.parametrize("command", COMMANDS)
def test_who_races_in_a_shared_folder_gains_nothing(place: Place, command: str, mode: int) -> None:
    before = place.own()
    for seed in range(12):
        shutil.rmtree(place.shared)
        place.shared.mkdir()
        place.shared.chmod(mode)
        code = raced(place, place.words(command), Other(place, seed))
        assert code in (0, 2, 3, 4), seed
        assert place.own() == before, seed
