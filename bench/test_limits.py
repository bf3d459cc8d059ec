"""Does the script that limits rest on count right?"""

from bench.limits import Ran, apart, shown, spreads

BEFORE, SELF, AFTER = ("a", ""), ("b", ""), ("c", "")


def step(at: int, took: int) -> list[Ran]:
    launches = BEFORE, BEFORE, SELF, AFTER, AFTER
    return [("7", at + 100 * place, took, launch) for place, launch in enumerate(launches)]


def test_kernels_between_the_same_ones_are_alike() -> None:
    """10, 20 and 30 long: the 10th percentile is 10, the 90th 20, the median 20; others end a step."""
    kernels = [ran for at, took in enumerate((10, 20, 30)) for ran in step(1_000 * at, took)]
    assert (0.5, 60) in spreads(kernels)
    assert spreads(kernels[:10]) == []


def test_a_median_that_is_as_far_as_its_mean_is_not_apart() -> None:
    slow, usual = ([ran for took in lengths for ran in step(0, took)] for lengths in ((20,) * 3, (10,) * 3))
    assert {far for far, _ in apart([slow, usual])} == {0.0}
    mixed = [ran for took in (10, 10, 40) for ran in step(0, took)]
    assert (1.0, 60) in apart([mixed, usual])


def test_what_lies_within_is_told_by_number_and_by_time() -> None:
    assert shown("x", [(0.1, 30), (0.3, 10)], 0.25).startswith(
        "x: within 0.25 50.0% of 2, 75.0% of their time"
    )
