"""A page with one of every block, all its texts given, for tests of writers."""

from __future__ import annotations

from reports.content.blocks import (
    Bar,
    BlockRow,
    Code,
    CodeBlock,
    Column,
    Command,
    Drawing,
    Fold,
    Headline,
    Hue,
    Items,
    Part,
    Piece,
    Plan,
    Quantity,
    Sentence,
    Spelling,
    Step,
    Table,
    Term,
    Tone,
    Words,
)
from reports.content.page import Detail, Page
from reports.content.plane import Dot, Plane


def full_page(foreign: str = "a name", detail: Detail = Detail.FULL) -> Page:
    """Every block, and a foreign text wherever a block takes one."""
    said: Words = ("Read ", Code(foreign), f" of {foreign}, and ", Term("ep_dispatch"), ".")
    return Page(
        title=(Code(foreign),),
        facts=(f"{foreign}, 6 steps",),
        blocks=(
            Headline("SLOWED BY", said, Tone.BAD, under=(said,)),
            Sentence(said, label="Top kernels"),
            Items((said, said), title="Listed"),
            Items((said,), numbered=True),
            a_table(foreign),
            a_bar(foreign),
            CodeBlock(("--flag value", foreign)),
            Drawing((f"| {foreign}",), a_plane(foreign)),
            Plan("DO THIS", (a_step(foreign),), together=said, left_out=2),
            Command("Next: ", f"moe-diag explain {foreign}"),
            Fold("Folded", (Sentence(said), Fold("Folded within", (a_table(foreign),)))),
            Part("A part", (Sentence(said), Fold("Of the part", (Sentence(said),)), Sentence(said)), "part"),
        ),
        detail=detail,
        more="More: --full",
    )


def a_plane(foreign: str) -> Plane:
    return Plane((((0, 0), (1, 1)),), foreign, foreign, (Dot((0.5, 0.5), foreign),))


def a_table(foreign: str = "a name") -> Table:
    """Two rows and their part, which add up; a drawn share; one row cut."""
    return Table(
        "Could be faster by",
        (Column("What"), Column("ms/step", number=True), Column("Share", number=True)),
        (
            BlockRow(((Code(foreign),), Quantity("30"), Quantity("30 %", 0.3, Hue.COMMUNICATION))),
            BlockRow(((foreign,), Quantity("10"), Quantity("10 %", 0.1)), depth=1),
            BlockRow((("other",), Quantity("20"), Quantity("20 %", 0.2))),
        ),
        total=BlockRow((("all",), Quantity("50"), Quantity("50 %", 0.5))),
        left_out=1,
        note=("Per step.",),
    )


def a_bar(name: str = "compute") -> Bar:
    """Three quarters and a quarter."""
    pieces = (Piece(name, 0.75, "75 ms", Hue.COMPUTE), Piece("idle", 0.25, "25 ms", Hue.IDLE))
    return Bar("One step", "100 ms", pieces, note=("No copies.",))


def a_step(foreign: str = "a name") -> Step:
    """A fix with two spellings and a precondition."""
    return Step(
        "MEM-2",
        ("Stop recomputing ", Code(foreign)),
        "saves 25-28 %",
        (
            Spelling("megatron_lm", "Megatron-LM", CodeBlock(("--recompute-granularity selective", foreign))),
            Spelling("megatron_bridge", "Bridge", CodeBlock((f"x: {foreign}",), "yaml")),
        ),
        notes=(("Check: memory was 80 % full, ", foreign),),
        low=0.25,
        high=0.28,
    )
