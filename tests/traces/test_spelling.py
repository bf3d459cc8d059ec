"""Numbers have one spelling, and no other file makes another."""

from hypothesis import given
from hypothesis import strategies as st

from traces.errors import MoeDiagError
from traces.spelling import (
    LINE,
    between,
    chosen,
    duration,
    gigabytes,
    in_ms,
    numbers,
    one_line,
    percent,
    printable,
    rounded,
    saving,
    signed_ms,
    sized,
)

"""Of what people read, and of lengths in a style sheet."""


def test_a_measured_share_has_a_decimal_below_a_tenth_and_is_never_all_or_nothing_by_rounding() -> None:
    shares = (0, 0.0004, -0.0004, 0.04, 0.0994, 0.0996, 0.234, 0.996, 1)
    assert [percent(one) for one in shares] == [
        *("0 %", "<0.1 %", ">-0.1 %", "4.0 %", "9.9 %", "10 %", "23 %", ">99 %", "100 %")
    ]


def test_a_share_that_somebody_chose_is_written_as_it_was_given() -> None:
    assert [chosen(one) for one in (0.03, 0.0025, 0.07, 0.95)] == ["3 %", "0.25 %", "7 %", "95 %"]


def test_figures_have_three_digits_and_the_unit_that_fits() -> None:
    assert [rounded(one) for one in (0, 0.0123, 98.76, 12345)] == ["0", "0.0123", "98.8", "12,300"]
    assert [in_ms(one) for one in (5_000_000, 999)] == ["5.00 ms", "<0.001 ms"]
    assert [duration(one) for one in (500, 41_000, 93_800_000)] == ["500 ns", "41.0 us", "93.8 ms"]
    assert gigabytes(25_500_000_000) == "25.5 GB"
    assert [sized(one) for one in (0, 672, 1_500, 16_800_000, 25.5e9)] == [
        *("0 B", "672 B", "1.50 kB", "16.8 MB", "25.5 GB")
    ]


def test_differences_have_their_sign_and_nothing_has_none() -> None:
    changes = (5_000_000, -1_234_567_890, 0, -400)
    assert [signed_ms(one) for one in changes] == ["+5.00 ms", "-1,230 ms", "0 ms", ">-0.001 ms"]


def test_a_saving_is_a_range_and_ranks_in_a_row_are_one() -> None:
    assert [saving(0.25, 0.28), saving(None, 0.18), saving(-0.029, 0.068)] == [
        *("25-28 %", "up to 18 %", "-2.9 % to +6.8 %")
    ]
    assert [saving(None, None), saving(0.08, 0.08), saving(0.0, 0.0)] == ["not replayed", "8.0 %", "0 %"]
    assert numbers((7, 0, 3, 5, 4, 6)) == "0, 3 to 7"


def test_a_foreign_name_is_harmless_and_no_longer_than_its_room() -> None:
    assert printable("a\x1b[2J\u202eb\nc", 20) == "a [2J b c"
    assert len(printable("x" * 500, 44)) == 44


@given(st.text(st.characters(exclude_categories=())), st.integers(0, 40_000))
def test_an_error_is_one_harmless_line_with_its_beginning_and_its_end(foreign: str, times: int) -> None:
    line = str(MoeDiagError(f"run.json: no word of ours: {foreign * times}. Make the result again"))
    assert line.isprintable()
    assert len(line.encode()) <= LINE.value
    assert line.startswith("run.json: no word of ours: ")
    assert line.endswith(". Make the result again")


def test_an_error_that_is_short_enough_stays_as_it_is() -> None:
    assert one_line("a  is\nno b. Type c") == "a is no b. Type c"
    assert one_line("ü" * 1000) == "ü" * 1000
    assert one_line("ü" * 1001) == "ü" * 665 + "..." + "ü" * 333


def test_ends_of_a_range_that_read_alike_are_one_figure() -> None:
    assert between("12 %", "12 %") == "12 %"
    assert between("9.5 %", "12 %") == "9.5 % to 12 %"
