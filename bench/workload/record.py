"""One state's training step, run and recorded by the PyTorch profiler."""

import importlib
import platform
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from bench.workload.megatron import Place, started
from bench.workload.model import Stack
from bench.workload.states import SIZES, STATES
from bench.workload.step import WARM_UP_STEPS, Steps
from traces.errors import InputError

SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Request:
    """What to record. `device`: cuda or cpu; `step_count` steps are recorded, after those that warm up."""

    state: str
    device: str
    step_count: int
    megatron: bool


def record(request: Request, raw: Path) -> dict[str, Any]:
    """Run a state, write the profiler's JSON to `raw`, and say the known state and how it was made.

    Raises `InputError` where PyTorch, the device or Megatron-Core is absent.
    """
    torch = _torch()
    if request.device == "cuda" and not torch.cuda.is_available():
        raise InputError("PyTorch sees no CUDA device here. Type --device cpu to try without kernels.")
    torch.manual_seed(SEED)
    with started(torch, request.device, Place()) if request.megatron else nullcontext():
        state = STATES[request.state]
        model = Stack(torch, state, request.device, megatron=request.megatron)
        run = Steps(torch, model, state, request.device, torch.profiler.record_function)
        loss = _profiled(torch, run, request, raw)
        return made_how(torch, request, run.not_done, loss)


def _profiled(torch: Any, run: Steps, request: Request, raw: Path) -> float:
    """Record the steps; the loss of the last one."""
    profiler = torch.profiler
    kinds = [profiler.ProfilerActivity.CPU]
    if request.device == "cuda":
        kinds.append(profiler.ProfilerActivity.CUDA)
    plan = profiler.schedule(wait=1, warmup=WARM_UP_STEPS, active=request.step_count, repeat=1)
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    loss: Any = None
    with profiler.profile(
        activities=kinds,
        schedule=plan,
        on_trace_ready=lambda done: done.export_chrome_trace(str(raw)),
        experimental_config=config,
    ) as profile:
        for _ in range(1 + WARM_UP_STEPS + request.step_count):
            loss = run.step()
            profile.step()
    return float(loss)


def made_how(torch: Any, request: Request, not_done: list[str], loss: float) -> dict[str, Any]:
    """What is written beside a recording: its known state and how it was made. `loss`: of the last step."""
    state, sizes = STATES[request.state], SIZES[request.device]
    on_gpu = request.device == "cuda"
    return {
        "state": request.state,
        "known": state.known,
        "beside": state.beside,
        "ran_as": "eager" if not_done else request.state,
        "not_done": not_done,
        "settings": {key: value for key, value in asdict(state).items() if key not in ("known", "beside")},
        "sizes": {**asdict(sizes), "ffn": sizes.ffn(state), "capacity": sizes.capacity(state)},
        "layer": "megatron-core" if request.megatron else "torch",
        "seed": SEED,
        "recorded_step_count": request.step_count,
        "last_loss": loss,
        "device": request.device,
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "megatron-core": _version("megatron-core") if request.megatron else None,
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise InputError("PyTorch is not installed here. Type pip install torch==2.13.0") from None
