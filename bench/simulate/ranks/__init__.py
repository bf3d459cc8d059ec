"""Ranks that wait for each other: runs of 8 to 64 ranks with one known cause, and what is true of them.

    truth = draw_run(seed, Cause.SLOW_DEVICE, 8)
    files = write_ranks(truth.done, folder, draw_clocks(truth.run), Capture(files=Files.HOST))

`RanksRun(seed, Layout(...), Knobs(...), Cause.SLOW_HOST, rank=3, strength=2.0)` is a run that was not drawn,
for `simulate`; what is true of it is `Truth(simulate(run), simulate(run.mended()))`.
"""
