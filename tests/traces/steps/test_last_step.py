"""Where the last step ends."""

from tests.by_hand.run import Run


def test_a_long_copy_of_an_early_step_hides_no_collective_of_the_later_ones() -> None:
    """Only what a step launched itself tells whether the next step's compute hides how it ends."""
    run = Run()
    for step in run.steps(5, every=100):
        step.work("gemm", 0, 80)
        step.work("all_reduce", 80, 90, stream=20)
    run.work("d2d", 90, 700, launch=75, stream=30)
    assert run.steps_found()[-1] == (400, 700)
