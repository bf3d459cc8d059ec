"""A few hundred spoiled inputs of each target, the same everywhere; and the fuzzer finds what is planted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.fuzz import exports, kineto, pages
from bench.fuzz.run import attack, outcome, read_as, smallest
from bench.fuzz.target import Target, case
from bench.fuzz.targets import TARGETS
from traces.errors import DamagedTrace

INPUTS = {"pages": 500, "results": 500, "summaries": 500, "structures": 30}
"""Of the others, which take longer, 150, and 10 of those that are long."""
MANY = 1 << 40


@pytest.fixture(autouse=True, scope="module")
def no_recordings() -> Iterator[None]:
    """The same seeds on every machine."""
    kept = (exports.exports, pages.seeds, kineto.seeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOE_DIAG_TRACES", raising=False)
        for one in kept:
            one.cache_clear()
        yield
    for one in kept:
        one.cache_clear()


@pytest.mark.parametrize("name", TARGETS)
def test_spoiled_inputs_are_read_or_refused(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for number in range(INPUTS.get(name, 10 if name.startswith("long_") else 150)):
        assert outcome(case(target, 19, number), tmp_path) is None, (
            f"--target {name} --seed 19, input {number}"
        )


def planted(path: Path, deep: bool) -> None:
    """Refuses b, and goes wrong with what has c, d, e or f."""
    content = path.read_bytes()
    if b"b" in content:
        raise DamagedTrace("no b")
    if b"c" in content:
        raise KeyError("c")
    if b"d" in content:
        time.sleep(60)
    if b"e" in content:
        path.write_bytes(b"changed")
    if b"f" in content:
        os._exit(9)
    if b"g" in content:
        bytearray(3 << 30)


def letters(found: str) -> Target[str]:
    """A text to which each step adds one of these letters."""
    return Target(
        name="letters",
        begin=lambda rng: "",
        spoil=lambda rng, text: text + rng.choice(found),
        written=lambda rng, text: ("run.txt", f"<{text}>".encode()),
        check=planted,
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("ab", None),
        ("aaac", "KeyError at test_fuzz.py"),
        ("aaad", "no end within 0.5 s"),
        ("aaae", "the input was changed"),
        ("aaaf", "ended by 9"),
        ("aaag", "MemoryError at test_fuzz.py"),
    ],
)
def test_what_goes_wrong_is_found(found: str, said: str | None) -> None:
    what = attack(letters(found), 1, 30, MANY, jobs=2, hang_s=0.5)
    assert what.inputs == 30
    assert any(one.startswith(said or "") for one in what.problems) == (said is not None)


def test_a_failing_input_is_kept_as_small_as_it_fails(tmp_path: Path) -> None:
    target = letters("abcx")
    what = attack(letters("aaaxc"), 1, 30, MANY, jobs=1)
    ((said, number),) = what.problems.items()
    name, content = smallest(letters("aaaxc"), 1, number, said)
    assert (name, content) == ("run.txt", b"c")
    again = read_as(target, name, content, tmp_path, deep=False)
    assert again is not None
    assert again.startswith("KeyError at test_fuzz.py")


def test_an_input_is_made_again_from_its_number() -> None:
    for target in TARGETS.values():
        assert case(target, 3, 7).made() == case(target, 3, 7).made()
        assert len({case(target, 3, number).made()[1] for number in range(20)}) > 10


def test_a_file_left_beside_the_input_is_a_problem(tmp_path: Path) -> None:
    def check(path: Path, deep: bool) -> None:
        path.with_suffix(".left").touch()

    leaves = Target("leaves", lambda rng: "", lambda rng, text: text, lambda rng, text: ("a", b"1"), check)
    assert read_as(leaves, "a", b"1", tmp_path, deep=False) == "a file was left beside the input"
    assert [*tmp_path.iterdir()] == []
