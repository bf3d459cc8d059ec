"""Which folders are the user's alone, so that what lies there may be trusted, or even run."""

from __future__ import annotations

import grp
import os
import pickle
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.doubles.loops import VALUES, add_up
from tests.hostile.attachments import OTHER_USER
from traces.files.own_folder import is_surely_ours, make_own, way_beside, way_in
from traces.loops import loop


@pytest.fixture
def own() -> Iterator[Path]:
    """A folder that others can reach, two levels below the one for temporary files."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        make_own(Path(place) / "shared" / "own")
        (Path(place) / "shared").chmod(0o755)
        yield Path(place) / "shared" / "own"


def test_what_is_made_is_the_users_alone_all_the_way(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_own(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}
    assert is_surely_ours(made[-1])


@pytest.mark.parametrize(
    ("mode", "way"),
    [
        (0o700, None), (0o755, None), (0o2755, None), (0o1777, "others can write into it"),
        (0o777, "others can write into it"), (0o702, "others can write into it"),
    ],
)  # fmt: skip
def test_others_come_in_by_its_mode(own: Path, mode: int, way: str | None) -> None:
    own.chmod(mode)
    assert way_in(own) == way
    assert is_surely_ours(own) == (mode == 0o700)  # what numba makes in it may have any mode


@pytest.mark.parametrize(("mode", "is_shared"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_others_come_in_by_the_folder_above(own: Path, mode: int, is_shared: bool) -> None:
    own.parent.chmod(mode)
    assert way_in(own) == (f"others can rename what is in {own.parent}" if is_shared else None)


def test_where_the_folder_that_nobody_else_enters_can_be_replaced_they_do(own: Path) -> None:
    (own / "inner").mkdir()
    own.parent.chmod(0o777)
    assert way_in(own / "inner") == f"others can rename what is in {own.parent}"


@pytest.mark.parametrize(
    ("mode", "way"),
    [(0o755, None), (0o777, "others can write into it"), (0o1777, "others can write into it")],
)
def test_others_put_files_beside_one_where_they_can_write(own: Path, mode: int, way: str | None) -> None:
    own.chmod(mode)
    assert way_beside(own / "h.sqlite") == way
    own.parent.chmod(0o700)
    assert way_beside(own / "h.sqlite") is None


def test_a_link_is_no_folder_of_ours_though_links_above_it_are_followed(own: Path) -> None:
    link = own.parent.with_name("link")
    link.symlink_to(own.parent)
    assert way_in(link) == "it is a link"
    assert way_in(link / "own") is None
    own.parent.chmod(0o777)
    assert str(way_in(link / "own")).startswith("others can rename what is in ")


@pytest.mark.parametrize(
    ("members", "is_private"), [([], True), (["user"], True), (["user", "another"], False)]
)
def test_a_group_that_the_user_has_alone_is_nobody_else(
    own: Path, monkeypatch: pytest.MonkeyPatch, members: list[str], is_private: bool
) -> None:
    group = SimpleNamespace(gr_name="user", gr_mem=members)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="user", pw_gid=own.stat().st_gid))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    own.parent.chmod(0o775)
    assert (way_in(own) is None) == is_private


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: would have shown folders of another user")
def test_a_folder_of_another_user_above_is_one_way_in(own: Path) -> None:
    os.chown(own.parent, OTHER_USER, OTHER_USER)
    assert way_in(own) is None
    assert not is_surely_ours(own)  # as root may write anywhere, this user may have put it there
    own.parent.chmod(0o1777)
    assert way_in(own) == f"others can rename what is in {own.parent}"
    os.chown(own, OTHER_USER, OTHER_USER)
    assert way_in(own) == "it belongs to another user"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o755, 0o700])
def test_compiled_loops_are_run_only_from_where_nobody_else_enters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def add() -> None:
        sums = np.zeros(3, dtype=np.int64)
        assert loop("sums")(add_up._text).compiled(VALUES, sums, 10) == 10

    add()
    kept = [path for path in tmp_path.rglob("*.nb[ic]") if path.is_file()]
    (folder,) = {path.parent.parent for path in kept}
    for path in kept:
        path.write_bytes(b"what a stranger wrote")
    folder.chmod(mode)
    if mode == 0o700:
        with pytest.raises(pickle.UnpicklingError):  # it is read
            add()
    else:
        add()
