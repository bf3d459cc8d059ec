"""What a stranger may put into a folder, and the look at everything before and after."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.doubles.sides import as_json, result_of_run
from traces.files import aside

OTHER_USER: Final = 65534
NAMES: Final = ("run_report.md", "run_manifest.json")
"""Of a ticket of `run.json`, two of those that it may replace."""

Seen = Mapping[str, tuple[object, ...]]


def looked_at(*places: Path, but: Path | None = None) -> Seen:
    """All at and below some places: kind, mode, owner, inode, time, content. `but`: what is left out."""
    return {str(path): _seen(path) for place in places for path in _all(place, but)}


def _all(place: Path, but: Path | None) -> Iterator[Path]:
    if place == but or not os.path.lexists(place):
        return
    yield place
    if place.is_dir() and not place.is_symlink():
        for one in sorted(place.iterdir()):
            yield from _all(one, but)


def _seen(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    what: object = ""
    if stat.S_ISLNK(found.st_mode):
        what = path.readlink()
    elif stat.S_ISREG(found.st_mode):
        what = hashlib.sha256(path.read_bytes()).hexdigest(), found.st_mtime_ns
    return found.st_mode, found.st_uid, found.st_ino, what


@dataclass(frozen=True)
class Desk:
    """A user's home with things that are nobody's business, an attachment, and a result to write of."""

    home: Path
    attachment: Path
    result: Path

    @property
    def key(self) -> Path:
        return self.home / ".ssh" / "id_rsa"

    def outside(self) -> Seen:
        """All but the attachment and what the program keeps for itself."""
        return looked_at(self.home, but=self.home / ".cache")

    def inside(self) -> Seen:
        return looked_at(self.attachment)


def desk(base: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    home = base / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    (home / ".ssh" / "id_rsa").write_text("a key", encoding="utf-8")
    (home / "mine").mkdir()
    for name in NAMES:
        (home / "mine" / name).write_text("mine", encoding="utf-8")
    os.mkfifo(home / "mine" / "pipe")  # whoever opens it to read waits for ever
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("MOE_DIAG_HISTORY", raising=False)
    attachment = base / "attachment"
    attachment.mkdir()
    (attachment / "notes.txt").write_text("of the sender", encoding="utf-8")
    for name, content in _run().items():
        (base / name).write_bytes(content)
    return Desk(home, attachment, base / "run.json")


@cache
def _run() -> dict[str, bytes]:
    """A recording and its result, as files."""
    with tempfile.TemporaryDirectory() as folder:
        trace, result = Path(folder) / "run.sqlite", Path(folder) / "run.json"
        as_json(result, result_of_run(trace))
        return {one.name: one.read_bytes() for one in (trace, result)}


def name_of_ours(number: int = 7) -> str:
    """A name as our own runs on this machine give it."""
    return f".moe-diag-{aside._machine()}-{number:016x}"


def forged(made: Mapping[str, Path], replaced: Mapping[str, Path] = {}, last: str = NAMES[1]) -> bytes:
    """A list of moves that tells the true numbers of real files."""

    def told(several: Mapping[str, Path]) -> dict[str, list[int]]:
        found = {name: path.lstat() for name, path in several.items()}
        return {name: [one.st_dev, one.st_ino, one.st_size] for name, one in found.items()}

    return json.dumps({"last": last, "made": told(made), "replaced": told(replaced)}).encode()


def aged(left: Path) -> None:
    """As an archive brings times: days ago."""
    then = time.time() - 3 * 24 * 3600
    below = [] if left.is_symlink() else [*left.rglob("*")]
    for path in (*below, left):
        os.utime(path, (then, then), follow_symlinks=False)


def _usual(left: Path) -> Path:
    left.mkdir(mode=0o700)
    for name in ("made", "replaced"):
        (left / name).mkdir(mode=0o700)
    (left / "made" / NAMES[1]).write_text("{}", encoding="utf-8")
    (left / "moves").write_bytes(forged({NAMES[1]: left / "made" / NAMES[1]}))
    return left


def _replaced_leads_out(left: Path, desk: Desk) -> None:
    (_usual(left) / "replaced").rmdir()
    (left / "replaced").symlink_to(desk.home / ".ssh")


def _replaced_leads_out_relatively(left: Path, desk: Desk) -> None:
    (_usual(left) / "replaced").rmdir()
    (left / "replaced").symlink_to("../../home/mine")


def _made_leads_to_the_attachment(left: Path, desk: Desk) -> None:
    shutil.rmtree(_usual(left) / "made")
    (left / "made").symlink_to("..")
    for name in NAMES:
        (left.parent / name).write_text("of the sender", encoding="utf-8")
    (left / "moves").write_bytes(forged({name: left.parent / name for name in NAMES}, last="none"))


def _made_leads_to_the_users_own(left: Path, desk: Desk) -> None:
    shutil.rmtree(_usual(left) / "made")
    (left / "made").symlink_to(desk.home / "mine")


def _hard_links_to_what_lies_beside(left: Path, desk: Desk) -> None:
    _usual(left)
    os.link(left.parent / "notes.txt", left / "made" / "notes.txt")
    os.link(desk.key, left / "replaced" / "id_rsa")
    made = {"notes.txt": left.parent / "notes.txt", NAMES[1]: left / "made" / NAMES[1]}
    (left / "moves").write_bytes(forged(made, {"id_rsa": desk.key}))


def _is_itself_a_link(left: Path, desk: Desk) -> None:
    left.symlink_to(desk.home / ".ssh")


def given_away(*paths: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: would have shown that what is another user's is left alone or refused")
    for path in paths:
        os.chown(path, OTHER_USER, OTHER_USER)


def _of_another_user(left: Path, desk: Desk) -> None:
    given_away(_usual(left), *left.rglob("*"))


def _shared_with_all(left: Path, desk: Desk) -> None:
    _usual(left).chmod(0o1777)


def _odd_names(left: Path, desk: Desk) -> None:
    _usual(left)
    made = {NAMES[1]: left / "made" / NAMES[1]}
    for name in ("a b", "two\nlines", "-rf", "\x1b[2J", "*"):
        (left / "made" / name).write_text("x", encoding="utf-8")
        os.link(left / "made" / name, left.parent / name)
        made[name] = left / "made" / name
    (left / "moves").write_bytes(forged(made))


def _pipe_and_socket(left: Path, desk: Desk) -> None:
    (_usual(left) / "moves").unlink()
    os.mkfifo(left / "moves")
    before = Path.cwd()
    os.chdir(left / "made")  # the name of a socket may not be long
    with closing(socket.socket(socket.AF_UNIX)) as one:
        one.bind(NAMES[0])
    os.chdir(before)


def _leads_nowhere(left: Path, desk: Desk) -> None:
    (_usual(left) / "replaced").rmdir()
    (left / "replaced").symlink_to("nowhere")
    (left / "made" / NAMES[0]).symlink_to("/nowhere/at/all")


def _list_of_files_elsewhere(left: Path, desk: Desk) -> None:
    name = "../../home/.ssh/id_rsa"
    made = {name: desk.key, str(desk.key): desk.key, NAMES[1]: left.parent / "notes.txt"}
    (_usual(left) / "moves").write_bytes(forged(made, {name: desk.key}, last="none"))


def _perfect_but_for_the_note(left: Path, desk: Desk) -> None:
    """All as a run of ours leaves it; only that no run of ours did."""
    _usual(left)
    (left / "replaced" / NAMES[0]).write_text("of the sender", encoding="utf-8")
    os.link(left.parent / "notes.txt", left / "made" / "notes.txt")
    made = {"notes.txt": left / "made" / "notes.txt", NAMES[1]: left / "made" / NAMES[1]}
    (left / "moves").write_bytes(forged(made, {NAMES[0]: left / "replaced" / NAMES[0]}))


def _plain_folder_of_the_user(left: Path, desk: Desk) -> None:
    left.mkdir(mode=0o700)
    (left / "thesis.txt").write_text("years of work", encoding="utf-8")


FORMS: Final[Mapping[str, Callable[[Path, Desk], None]]] = {
    one.__name__.strip("_"): one
    for one in (
        _replaced_leads_out, _replaced_leads_out_relatively, _made_leads_to_the_attachment,
        _made_leads_to_the_users_own, _hard_links_to_what_lies_beside, _is_itself_a_link, _of_another_user,
        _shared_with_all, _odd_names, _pipe_and_socket, _leads_nowhere, _list_of_files_elsewhere,
        _perfect_but_for_the_note, _plain_folder_of_the_user,
    )
}  # fmt: skip
"""What may stand in place of a left-over folder, by its name. Another user's needs root."""


def plant(form: str, folder: Path, desk: Desk, name: str) -> Path:
    left = folder / name
    FORMS[form](left, desk)
    aged(left)
    return left
