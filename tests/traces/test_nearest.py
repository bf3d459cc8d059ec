"""The known names nearest to an unknown one, and what looking for them costs."""

from traces.nearest import LONGEST_NAME, MOST_NAMES, nearest, nearest_names
from traces.settings.draft import MOST_PROBLEMS
from traces.settings.names import lm_flags
from traces.settings.read import configuration_of


def test_the_nearest_names_come_first() -> None:
    assert nearest_names("stpe", ["late", "step", "steps"], 2) == ["step", "steps"]
    assert nearest("--moe-router-topkk", lm_flags()) == "--moe-router-topk"
    assert nearest("--moe_grouped_gemm", lm_flags()) == "--moe-grouped-gemm"
    assert nearest("--xyzzy-plugh", lm_flags()) == ""


def test_a_long_word_is_near_to_nothing() -> None:
    longest = "a" * int(LONGEST_NAME.value)
    assert nearest(longest, [longest]) == longest
    assert nearest(longest + "a", [longest, longest + "a"]) == ""


def test_of_more_names_than_a_framework_has_the_first_are_looked_at() -> None:
    many = [f"range_{number}" for number in range(int(MOST_NAMES.value))]
    assert nearest_names("step", [*many, "step"], 1) == []
    assert nearest_names("step", ["step", *many], 1) == ["step"]


def test_after_the_first_unknown_names_none_is_looked_for() -> None:
    flag = sorted(lm_flags())[0]
    many = " ".join(f"--zz{number}-yy 1" for number in range(int(MOST_PROBLEMS.value)))
    last = {
        one.instead for one in configuration_of(f"pretrain_gpt.py --num-layers 4 {flag}x", "run.sh").problems
    }
    assert flag in last
    late = configuration_of(f"pretrain_gpt.py --num-layers 4 {many} {flag}x", "run.sh").problems
    assert flag not in {one.instead for one in late}
