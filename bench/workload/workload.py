"""Record our own real runs: a small MoE training step in a known state, by the PyTorch profiler.

    python -m bench.workload --state eager --out eager.json.gz

writes the recording, scrubbed, and beside it `eager.known.json`: the state and how it was made. PyTorch is
imported only when a state is run, Megatron-Core only with `--megatron`; reading a recording needs neither.
"""

import json
import tempfile
from pathlib import Path
from typing import Final

from bench.workload.record import Request, record
from bench.workload.scrub import scrub
from bench.workload.states import SIZES, STATES
from traces.errors import OutputNotWritable, UsageError
from traces.files.aside import write_whole

_SUFFIX: Final = ".json.gz"


def workload(
    state: str, out: Path, *, step_count: int = 6, device: str = "cuda", megatron: bool = False
) -> str:
    """Record a state, write `out` and its `.known.json`, and say in a few lines what was recorded.

    Raises `UsageError` for what cannot be asked for, `InputError` where PyTorch, the device or Megatron-Core
    is absent, `OutputNotWritable` where the result cannot be put there.
    """
    known = _checked(state, out, step_count, device)
    try:
        with tempfile.TemporaryDirectory(prefix="moe-diag-") as folder:
            raw = Path(folder) / "raw.json"
            made = record(Request(state, device, step_count, megatron), raw)
            gpu_events = scrub(raw, out)
        made = {**made, "gpu_event_count": gpu_events}
        write_whole(known, (json.dumps(made, indent=2, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise OutputNotWritable(
            f"{out} cannot be written ({error}). Give another place with --out."
        ) from None
    said = [
        f"{out}: {step_count} steps of state {state}, {gpu_events} GPU events",
        f"{known}: {STATES[state].known}",
    ]
    return "\n".join([*said, *(f"not done: {what}" for what in made["not_done"])])


def _checked(state: str, out: Path, step_count: int, device: str) -> Path:
    """The file that says the known state, once all that was asked for can be."""
    if state not in STATES:
        raise UsageError(f"no state is called {state}; there are {', '.join(STATES)}. Give one with --state.")
    if device not in SIZES:
        raise UsageError(f"{device} is no device; there are {', '.join(SIZES)}. Give one with --device.")
    if step_count < 1:
        raise UsageError(f"{step_count} steps cannot be recorded. Give 1 or more with --steps.")
    if not out.name.endswith(_SUFFIX):
        raise UsageError(f"{out.name} does not end with {_SUFFIX}. Give another name with --out.")
    known = out.with_name(out.name.removesuffix(_SUFFIX) + ".known.json")
    for path in (out, known):
        if path.exists():
            raise UsageError(f"{path} exists. Give another place with --out.")
    if not out.parent.is_dir():
        raise OutputNotWritable(f"{out.parent} is no folder. Create it, or give another place with --out.")
    return known
