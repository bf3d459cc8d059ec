"""The optimizer of a step: the norm of the gradients, Muon, and Adam on the GPU and on the host."""

from __future__ import annotations

from typing import Final

from bench.simulate.host_program import Engine, Part
from bench.simulate.pieces import ADAM
from bench.simulate.script import COMPUTE, OFFLOAD, RELOAD, Script

_ADAM_SHARES: Final = {"adam": (1.0,), "two_adams": (0.35, 0.65), "muon_adam": (0.1,)}
"""Of the optimizer's time, what each Adam takes, in order."""
_MUON_FRAC: Final = 2.0
"""Muon orthogonalises what it updates: matrix products beside Adam's one pass over memory."""
_MUON_ROUNDS: Final = 5
_MUON_PRODUCTS: Final = 3
"""Newton-Schulz rounds, and matrix products of each (Jordan and others, "Muon", 2024)."""
_MIB: Final = 1 << 20


def update(script: Script) -> None:
    """Update the parameters by gradients that compute has waited for."""
    knobs = script.knobs
    shares = _ADAM_SHARES[knobs.optimizers]
    for share in shares:
        _norm(script, knobs.optimizer_us * 0.1 * share)
    if knobs.end_of_step == "read_back":
        script.read_scalar("norm")
    if knobs.optimizers == "muon_adam":
        _muon(script)
    if not knobs.cpu_adam_ms:
        _adam(script, 1.0)
        return
    copied = _gradients_to_host(script)
    _adam(script, 1.0 - knobs.cpu_adam_frac)
    _adam_on_host(script, copied)


def _norm(script: Script, us: float) -> None:
    """The norm of all gradients that one optimizer has."""
    script.kernel("l2norm", us)
    script.kernel("l2norm_cleanup", 0.2, blocks=8)
    script.after(COMPUTE, script.norms_on)
    late_us = script.knobs.peer_late_us
    script.communicate("nccl_all_reduce", 8.0, script.norms_on, name="norm", late_us=late_us)
    script.after(script.norms_on, COMPUTE)


def _muon(script: Script) -> None:
    """Momentum, and its orthogonal factor by matrix products, for the matrices of every layer."""
    knobs, products = script.knobs, _MUON_ROUNDS * _MUON_PRODUCTS
    for _ in range(knobs.layer_count):
        script.kernel("scale", knobs.small_kernel_us, name="momentum")
        for _ in range(products):
            us = _MUON_FRAC * knobs.optimizer_us / (products * knobs.layer_count)
            script.kernel("gemm_fwd", us, blocks=knobs.dense_tile_count, name="newton_schulz")


def _adam(script: Script, frac: float) -> None:
    """Adam of this part of the parameters on the GPU; no launch where there are none."""
    launches = script.knobs.adam_launches
    for share in _ADAM_SHARES[script.knobs.optimizers] if frac else ():
        for kernel, part in ADAM[script.knobs.adam]:
            for _ in range(launches):
                script.kernel(kernel, script.knobs.optimizer_us * 0.9 / launches * share * frac * part)


def _gradients_to_host(script: Script) -> int:
    """Copy what Adam on the host needs, layer by layer; the event of its arrival."""
    script.after(COMPUTE, OFFLOAD)
    with script.inside(Part.HOST_RESIDENT):
        for _ in range(script.knobs.layer_count):
            script.copy(Engine.COPY_TO_HOST, round(script.knobs.cpu_adam_mib * _MIB), OFFLOAD, "gradients")
    return script.record(OFFLOAD)


def _adam_on_host(script: Script, copied: int) -> None:
    """Adam on the host once the gradients are there, and what it updated back to the GPU."""
    script.synchronise("event", copied)
    script.busy(script.knobs.cpu_adam_ms, "adam on host")
    with script.inside(Part.HOST_RESIDENT):
        for _ in range(script.knobs.layer_count):
            script.copy(Engine.COPY_TO_DEVICE, round(script.knobs.cpu_adam_mib * _MIB), RELOAD, "updated")
        script.after(RELOAD, COMPUTE)
