"""What CUDA graphs of a run capture, as far as it was given or the trace shows."""

from heuristics.run.run import Run


def replays(run: Run) -> bool | None:
    """Whether CUDA graphs replay, of whatever implementation."""
    if run.config.graph_impl is not None:
        return run.config.graph_impl != "none"
    return None if run.active.graph_frac is None else run.active.graph_frac > 0


def captured_alone(run: Run, module: str) -> bool | None:
    """Whether Transformer Engine's graphs capture a module by itself; None where the modules are unknown."""
    if replays(run) is False or run.config.graph_impl not in (None, "transformer_engine"):
        return False
    modules = run.config.graph_modules
    return None if modules is None else module in modules
