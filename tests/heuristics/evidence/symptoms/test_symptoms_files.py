"""A symptoms file that cannot be read says what, where and what to type; an earlier result is one too."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.evidence.symptoms.document import Rank
from traces.errors import InputError


def read(**said: object) -> Symptoms:
    return read_symptoms(json.dumps(said), "symptoms.json")


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_symptoms(text, "symptoms.json")
    message = str(caught.value)
    assert message.startswith("symptoms.json: ")
    assert "\n" not in message
    return message


def test_an_unknown_key_is_named_with_the_nearest() -> None:
    assert "'exposed_comm_by_kind_frac'" in refusal('{"exposed_com_by_kind_frac": {}}')
    assert "'recompute_frac'" in refusal('{"memory": {"recomputed_frac": 0.1}}')
    assert "ranks[0].budget_frac.computed" in refusal('{"ranks": [{"budget_frac": {"computed": 0.1}}]}')
    assert "'ep_dispatch'" in refusal('{"exposed_comm_by_kind_frac": {"ep_dispach": 0.1}}')


def test_an_unknown_key_beside_known_ones_is_noted_and_not_read() -> None:
    given = '"comment": "x", "detected": {"dispatcher": "alltoall", "mood": 1}'
    text = f'{{"absent_frac": {{"launch_starved": 0.2}}, {given}}}'
    found = read_symptoms(text, "symptoms.json")
    assert [one.split(" is ")[0] for one in found.unread] == ["not read: comment", "not read: detected.mood"]
    assert found.ranks[0].starved_ns == {"launch": 200_000_000}


def test_a_percentage_in_place_of_a_part_says_how_to_write_it() -> None:
    assert "26 % is 0.26" in refusal('{"budget_frac": {"exposed_comm": 26}}')


def test_no_time_needs_no_window() -> None:
    found = read_symptoms('{"memory": {"recompute_ns": 0}, "budget_frac": {"compute": 0.9}}', "symptoms.json")
    assert found.ranks[0].memory.recompute_ns == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"budget_frac": {"compute": "much"}}', "budget_frac.compute: Expected `float"),
        ('{"budget_frac": {"compute": 1.5}}', "budget_frac.compute: Expected `float` <= 1.0"),
        ('{"ranks": [{"rank": 0, "sm": {"fill_frac": 1}}, 7]}', "ranks[1]: Expected `object`"),
        ('{"detected": {"dispatcher": "fast"}}', "detected.dispatcher: none of the known values"),
        ('{"memory": {"recompute_modules": [1]}}', "memory.recompute_modules[0]: Expected `str`"),
        ('{"run": {"ranks_seen": 9, "world_size": 8}}', "ranks_seen is more than world_size"),
        ('{"memory": {"recompute_ns": 5}}', "memory.recompute_ns is in ns, so give budget_ns.window too"),
        ('{"budget_ns": {"window": 9, "compute": 10}}', "budget_frac.compute: Expected `float` <= 1.0"),
        ('{"budget_ns": {"window": 0}}', "window without time"),
        ('{"ranks": [{"rank": 0}], "sm": {"fill_frac": 1}}', "figures stand beside ranks"),
        ('{"schema_version": "2.0"}', "schema_version is no version of ours"),
    ],
)
def test_a_value_that_cannot_be_is_named_by_its_path(text: str, said: str) -> None:
    assert said in refusal(text)


@pytest.mark.parametrize("text", ['{"sm": {"fill_frac": NaN}}', '{"sm": {"fill_frac": -Infinity}}'])
def test_nan_and_infinity_are_no_numbers(text: str) -> None:
    assert "no JSON" in refusal(text)


def test_what_is_no_json_names_its_place() -> None:
    assert "byte 9" in refusal('{"a": 1,\n]')
    assert "one JSON object" in refusal("[]")
    assert "recursion" in refusal("[" * 100_000)
    assert "out of range" in refusal('{"sm": {"fill_frac": ' + "9" * 5_000 + "}}")


@pytest.mark.parametrize("text", ["{}", '{"ranks": [{}]}', '{"memory": {}}', '{"sm": null}'])
def test_a_file_that_says_nothing_is_an_error(text: str) -> None:
    assert "nothing is given" in refusal(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"budget_frac": {"compute": 0.7, "idle": 0.4}}', "budget adds up to 1.100, more than the window"),
        ('{"budget_frac": {"exposed_comm": 0.1}, "exposed_comm_by_kind_frac": {"tp": 0.2}}',
         "exposed_comm_by_kind adds up to 0.200, more than exposed_comm (0.100)"),
        ('{"budget_frac": {"compute": 0.2}, "compute_by_class_frac": {"gemm": 0.3}}', "more than compute"),
        ('{"budget_frac": {"compute": 0.9}, "absent_frac": {"launch_starved": 0.2}}',
         "more than the window without compute"),
    ],
)  # fmt: skip
def test_parts_are_not_more_than_their_whole(text: str, said: str) -> None:
    assert said in refusal(text)


VALUE = st.sampled_from((None, True, -1, 0.2, 7, 1e308, "moe", [], [1], ["moe"], {}, {"launch": 0.1}))
KEYS = st.sampled_from(
    (
        *Rank.__struct_fields__,
        "budget_ns",
        "absent_ns",
        "ranks",
        "walls",
        "verdict",
        "run",
        "capture",
        "log",
        "traces",
    )
)
INSIDE = st.sampled_from(("window", "compute", "late", "blocking", "recompute_modules", "dispatcher", "rank"))


@given(st.dictionaries(KEYS, VALUE | st.dictionaries(INSIDE, VALUE, max_size=2), max_size=3))
def test_any_json_is_read_or_refused_in_one_line(value: dict[str, object]) -> None:
    text = json.dumps(value)
    try:
        read = read_symptoms(text, "symptoms.json")
    except InputError:
        assert refusal(text)
    else:
        assert len(observed_from(read).walls) == 4
