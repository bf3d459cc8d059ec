"""What a step holds that the others do not."""

from tests.by_hand.run import Run


def test_a_copy_belongs_to_the_step_that_launched_it_not_to_the_one_in_which_it_runs() -> None:
    """The host runs ahead: the third step's copy runs within the second one's time."""
    run = Run()
    told = [(10, 20, 50), (60, 60, 130), (100, 140, 180), (190, 190, 230)]
    for place, (copied, start, end) in enumerate(told):
        launched = 30 * place - 10
        run.range(f"iteration {place}", launched, launched + 30)
        run.work("d2h", copied, copied + 10, launch=launched + 5, stream=30, size_bytes=2 << 20)
        run.work("gemm", start, end, launch=launched + 20)
    assert run.steps_found() == [(10, 50), (50, 130), (130, 180), (180, 230)]
