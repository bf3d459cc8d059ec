"""A folder from a stranger: nothing outside of it is read, moved or removed, whatever lies in it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.doubles.writers import marked
from tests.hostile.attachments import FORMS, NAMES, Desk, desk, given_away, name_of_ours, plant
from tests.recordings.nsys import desk as desk_of_nsys

LEFT_ALONE = "left alone: not surely what a run of yours left there"
OF_ANY_TIME = ".moe-diag-00000000-abcdefgh"
"""As the name of another machine, and as older releases gave them."""


class Waits(BaseException):
    """It waited for a pipe that nobody writes to."""


@pytest.fixture(autouse=True)
def _never_waits() -> Iterator[None]:
    def end(*_: object) -> None:
        raise Waits

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    marked(monkeypatch)
    return desk(tmp_path, monkeypatch)


def words(command: str, here: Desk) -> list[str]:
    trace, folder = here.result.with_name("run.sqlite"), here.attachment
    return {
        "ticket": ["report", f"{here.result}", "--ticket", f"{folder}"],
        "ticket over one": ["report", f"{here.result}", "--ticket", f"{folder}", "--force-overwrite"],
        "new ticket beside": ["report", f"{here.result}", "--ticket", f"{folder}/new"],
        "files": ["report", f"{here.result}", "-f", "json", "-f", "markdown", "-o", f"{folder}/"],
        "summary": ["analyze", f"{trace}", "--no-megatron", "--summary", f"{folder}", "--force-overwrite"],
    }[command]


@pytest.mark.parametrize("name", [name_of_ours(), OF_ANY_TIME])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["ticket over one", "new ticket beside", "files", "summary"])
def test_a_left_over_that_no_run_of_ours_made_is_left_as_it_is(
    command: str, form: str, name: str, here: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(form, here.attachment, here, name)
    before, outside = here.inside(), here.outside()
    assert run(words(command, here)) == 0
    after = here.inside()
    replaced = {str(here.attachment / one) for one in NAMES} if command == "ticket over one" else set()
    changed = {path for path in before if before[path] != after.get(path)}
    assert changed <= replaced
    assert here.outside() == outside
    assert capsys.readouterr().err.count(LEFT_ALONE) == 1


@pytest.mark.parametrize("at", ["made_by_lock", "mine/pipe", ".ssh/id_rsa"])
def test_a_link_in_place_of_a_lock_is_refused(at: str, here: Desk, tmp_path: Path) -> None:
    there = desk_of_nsys(tmp_path / "nsys")
    kept = there.export()
    kept.unlink()
    (there.cache / f".moe-diag-{kept.stem}.lock").symlink_to(here.home / at)
    outside = here.outside()
    with pytest.raises(Exception, match=r"cannot write the cache folder .* give another with --cache-dir"):
        there.export()
    assert here.outside() == outside


def test_a_hard_link_in_place_of_a_lock_is_refused(here: Desk, tmp_path: Path) -> None:
    there = desk_of_nsys(tmp_path / "nsys")
    kept = there.export()
    kept.unlink()
    os.link(here.key, there.cache / f".moe-diag-{kept.stem}.lock")
    with pytest.raises(Exception, match=r"is no lock of yours: remove it\): give another with --cache-dir"):
        there.export()
    assert here.key.read_text(encoding="utf-8") == "a key"


@pytest.mark.parametrize("ending", [".sqlite", ".json"])
@pytest.mark.parametrize("what", ["link", "hard link", "pipe"])
def test_an_entry_of_the_cache_that_is_no_file_of_ours_is_neither_read_nor_followed(
    what: str, ending: str, here: Desk, tmp_path: Path
) -> None:
    there = desk_of_nsys(tmp_path / "nsys")
    entry = there.export().with_suffix(ending)
    kept = here.home / f"private{ending}"
    entry.rename(kept)
    if what == "pipe":
        os.mkfifo(entry)
    else:
        entry.symlink_to(kept) if what == "link" else os.link(kept, entry)
    outside = here.outside()
    there.export()
    assert there.nsys.exports == 2
    assert here.outside() == outside
    assert not entry.is_symlink()


@pytest.mark.parametrize("what", ["a link", "shared", "sticky", "of another user"])
def test_a_cache_that_is_not_the_users_alone_is_refused(what: str, here: Desk, tmp_path: Path) -> None:
    there = desk_of_nsys(tmp_path / "nsys")
    if what == "a link":
        there.cache.symlink_to(here.home / ".ssh")
    else:
        there.cache.mkdir(mode=0o700)
        there.cache.chmod({"shared": 0o777, "sticky": 0o1777}.get(what, 0o700))
    if what == "of another user":
        given_away(there.cache)
    outside = here.outside()
    with pytest.raises(Exception, match=r"is not yours alone \(.*\)\. Take that away .* --cache-dir DIR"):
        there.export()
    assert here.outside() == outside


@pytest.mark.parametrize("command", ["ticket", "summary"])
def test_a_link_in_place_of_a_folder_for_results_is_not_followed(
    command: str, here: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(here.attachment)
    here.attachment.symlink_to(here.home / ".ssh")
    outside = here.outside()
    assert run(words(command, here)) == 2
    assert "is a link. Name the folder that it leads to" in capsys.readouterr().err
    assert here.outside() == outside


@pytest.mark.parametrize("where", ["absolute", "relative", "through a folder"])
@pytest.mark.parametrize("command", ["merge", "analyze", "merge --witness"])
def test_a_folder_is_not_read_beyond_itself(
    command: str, where: str, here: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, home = here.result.with_name("run.sqlite"), here.home
    assert run(["analyze", str(trace), "--no-megatron", "--summary", str(home / "kept")]) == 0
    shutil.copy(trace, home / "kept" / "run.sqlite")
    name = "run.sqlite" if command == "analyze" else "run.rank"
    (here.attachment / "notes.txt").unlink()
    if where == "through a folder":
        (here.attachment / "inner").symlink_to(home / "kept")
    targets = {"absolute": f"{home}/kept", "relative": "../home/kept", "through a folder": "inner"}
    (here.attachment / name).symlink_to(f"{targets[where]}/{name}")
    capsys.readouterr()
    assert run([*command.split(), str(here.attachment)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "is a link out of its folder, which is not followed there" in err
    if command != "merge --witness":
        assert run([*command.split(), str(here.attachment / f"*{Path(name).suffix}")]) == 0  # who means it


def test_a_link_that_stays_in_the_folder_is_read(here: Desk) -> None:
    (here.attachment / "deeper").mkdir()
    shutil.copy(here.result.with_name("run.sqlite"), here.attachment / "deeper" / "run.sqlite")
    (here.attachment / "rank0.sqlite").symlink_to("deeper/run.sqlite")
    assert run(["analyze", str(here.attachment), "--no-megatron"]) == 0


@pytest.mark.parametrize("fact", ['config = "{}/run.yaml"', 'log = "../home/run.log"', 'log = "\\u0000"'])
def test_a_file_of_facts_names_no_file_elsewhere(
    fact: str, here: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.home / "run.yaml").write_text("model:\n  num_moe_experts: 8\n", encoding="utf-8")
    (here.home / "run.log").write_text("private", encoding="utf-8")
    (here.attachment / "moe-diag.toml").write_text(fact.format(here.home), encoding="utf-8")
    monkeypatch.chdir(here.attachment)
    assert run(["analyze", str(here.result.with_name("run.sqlite")), "--no-megatron"]) == 3
    assert "is a file elsewhere, which only --" in capsys.readouterr().err


def test_a_file_of_facts_that_is_a_link_is_not_followed(
    here: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.attachment / "moe-diag.toml").symlink_to(here.key)
    monkeypatch.chdir(here.attachment)
    assert run(["analyze", str(here.result.with_name("run.sqlite")), "--no-megatron"]) == 3
    assert "it is a link out of its folder" in capsys.readouterr().err
