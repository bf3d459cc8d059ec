"""Golden cases: a configuration and symptoms in; wall, first fix and what must not be recommended out."""

from __future__ import annotations

import pytest

from tests.configurations.golden import Case, cases, judgement_of, symptoms_of, wrongs
from traces.errors import InputError

CASES = cases()
JUDGED = [case for case in CASES if "error" not in case.expected]
"""Numbers from here on are cases of the kind that are no rows of the table."""


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case.number}")
def test_a_golden_case_is_judged_as_its_row_says(case: Case) -> None:
    assert wrongs(case, judgement_of(case)) == []


def test_a_window_without_time_is_an_error_and_no_wall() -> None:
    (case,) = [case for case in CASES if "error" in case.expected]
    with pytest.raises(InputError, match=case.expected["error"]):
        symptoms_of(case)
