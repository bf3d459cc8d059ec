"""The text writer: blocks in any width, cut to a screen where it must."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.content.blocks import (
    Bar,
    Block,
    BlockRow,
    Code,
    CodeBlock,
    Column,
    Command,
    Headline,
    Hue,
    Items,
    Piece,
    Plan,
    Quantity,
    Sentence,
    Spelling,
    Step,
    Table,
    Tone,
    words,
)
from reports.content.page import SCREEN, Detail, Page, View
from reports.write.text import ACTION, write_text

BAR = Bar(
    "One step",
    "100 ms",
    (
        Piece("compute", 0.6, "60.0", Hue.COMPUTE),
        Piece("communication", 0.3, "30.0", Hue.COMMUNICATION),
        Piece("launch delays", 0.1, "10.0", Hue.IDLE),
    ),
)
COSTS = Table(
    "Could save at most",
    (Column(""), Column("ms/step", number=True), Column("share", number=True), Column("")),
    (
        BlockRow(
            (
                words("Communication"),
                Quantity("30.0"),
                Quantity("30 %", 0.3, Hue.COMMUNICATION),
                words("dispatch"),
            )
        ),
        BlockRow((words("Memory"), Quantity(""), Quantity(""), words("unknown: nobody looked"))),
        BlockRow((words("Host overhead"), Quantity("1.00"), Quantity("1.0 %", 0.01, Hue.HOST), ())),
    ),
)


def step(id_: str, notes: int = 1) -> Step:
    code = CodeBlock(("--one-flag 1", "--another-flag 2"))
    return Step(
        id_,
        words("Change one thing"),
        "saves 10-20 %",
        (
            Spelling("megatron_lm", "Megatron-LM", code),
            Spelling("megatron_bridge", "Bridge", CodeBlock(("a.b=1",))),
        ),
        tuple(words(f"Check: condition {number}") for number in range(notes)),
    )


PLAN = Plan(
    "DO THIS", (step("COM-1"), step("COM-2"), step("COM-3")), words("All three together: 20 of 100 ms."), 4
)


def page(*blocks: Block, detail: Detail = Detail.FIRST) -> Page:
    return Page(
        words(Code("run.sqlite")), words("H100; 4 steps of 100 ms"), blocks, detail, "--full: the rest"
    )


def written(*blocks: Block, width: int = 80, detail: Detail = Detail.FIRST) -> list[str]:
    return write_text(page(*blocks, detail=detail), View(width=width)).splitlines()


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    lines = written(Sentence(words("x" * 57 + " 14 % of it")), width=60)
    assert lines[2:] == ["x" * 57, "14 % of it"]


def test_numbers_of_a_table_stand_to_the_right_and_unknown_rows_begin_their_reason_early() -> None:
    title, *rows = written(COSTS)[2:]
    assert title.split() == ["Could", "save", "at", "most", "ms/step", "share"]
    assert rows[0].index("30.0") + 4 == rows[2].index("1.00") + 4
    assert rows[0].endswith("dispatch")
    assert rows[0].count("#") > rows[2].count("#")
    assert rows[1].split(maxsplit=1) == ["Memory", "unknown: nobody looked"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_first_screen_is_cut_until_it_fits_and_its_first_step_stands_early(width: int) -> None:
    under = tuple(words("One reason of many. " * 20) for _ in range(3))
    steps = tuple(step(f"COM-{number}", notes=6) for number in range(3))
    lines = written(
        Headline("SLOWED BY", words("dispatch (30 %)"), Tone.BAD, under),
        BAR,
        COSTS,
        Plan("DO THIS", steps),
        Sentence(words("; ".join(["kernel"] * 40)), "Top kernels"),
        Command("Did it help?", "moe-diag compare run.sqlite AFTER"),
        width=width,
    )
    assert len(lines) <= SCREEN
    first = next(place for place, line in enumerate(lines, start=1) if line.startswith("  1  "))
    assert first <= ACTION * SCREEN
    assert all(len(line) <= width for line in lines)
    assert lines[-1].endswith("moe-diag compare run.sqlite AFTER")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_long_command_is_read_by_a_shell_as_it_was_before_it_was_broken(width: int) -> None:
    line = "nsys profile -t 'cuda, nvtx' --a=$(( 1 / 4 )) " + " ".join(f"--option-{n} {n}" for n in range(12))
    for block in (CodeBlock((line,)), Command("Record again:", line)):
        rows = [row for row in written(block, width=width)[2:] if not row.startswith(("Record", "More"))]
        assert all(len(row) <= width for row in rows)
        assert len(rows) > 1
        assert shlex.split("\n".join(rows).replace("\\\n", "")) == shlex.split(line)


def test_colour_is_only_in_what_asks_for_it_and_changes_no_word() -> None:
    blocks = (Headline("SLOWED BY", words("dispatch"), Tone.BAD), BAR, COSTS, PLAN)
    coloured = write_text(page(*blocks), View(colour=True))
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == write_text(page(*blocks), View()).splitlines()


LINE = 'nvidia-smi -q -d CLOCK (on both hosts; while it runs), then python -c "import a; a.b(1). Done"'
"""To be typed, with all that ends a sentence elsewhere."""


def crowded(line: str, sentences: int) -> Page:
    """A first screen with a line to type in the middle of everything that is said on it."""
    said = words(
        "Something is so. " * sentences + f"Then type {line}. " + "So it is; and so on. " * sentences
    )
    steps = tuple(
        Step(f"COM-{number}", words("Change it"), "targets 10 %", (), (said, said)) for number in range(9)
    )
    return page(
        Headline("SLOWED BY", words("dispatch (30 %)"), Tone.BAD, (said, said)),
        Plan("DO THIS", steps),
        Items((said,), "To look at", numbered=True),
        Table("Walls", (Column(""), Column("")), (BlockRow((words("Memory"), said)),)),
        Sentence(said, "Late rank"),
        Command("Did it help?", LINE.replace("; while", " while")),
    )


@given(width=st.integers(60, 200), rows=st.integers(SCREEN, 160), sentences=st.integers(0, 6))
def test_a_line_to_type_is_whole_or_not_there_in_a_terminal_of_any_size(
    width: int, rows: int, sentences: int
) -> None:
    text = write_text(crowded(LINE, sentences), View(width, rows))
    flat = " ".join(text.replace("\\\n", "").split())
    assert flat.count(LINE) == flat.count("Then type") == flat.count("nvidia-smi") - 1
    assert "Did it help?" in flat
