"""What goes with a dispatcher: SM counts, the machine's topology, placement, and what it asks of the rest."""

from collections.abc import Mapping
from typing import Final

from heuristics.guides.facts import is_low_precision
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.knobs import knobs

DEEPEP_SMS: Final = Limit(20, "SMs", "default of Megatron-Core 0.14 to 0.18, and the guide's place to start")
DEEPEP_SMS_B200_DSV3: Final = Limit(24, "SMs", "Megatron-Bridge's snapshot of DeepSeek-V3 on B200")
HYBRIDEP_SMS: Final = Limit(
    16, "SMs", "default of Megatron-Core 0.16.0 to 0.17.0, low end of the guide's sweep"
)
HYBRIDEP_SMS_HARNESS: Final = Limit(
    32, "SMs", "what Megatron-Bridge's performance harness sets; high end of the sweep"
)
GPUS_PER_NVL72_NODE: Final = Limit(4, "GPUs", "GB200 and GB300 NVL72: 18 nodes of four GPUs")

SM_KNOBS: Final = {"deepep": "moe_deepep_num_sms", "hybridep": "moe_hybridep_num_sms"}
SHARED_SM_KNOB: Final = "moe_flex_dispatcher_num_sms"
"""Takes the place of both from Megatron-Core 0.19; the two old ones set differently raise there."""


def backend_extras(run: Run, backend: str) -> tuple[str, ...]:
    """Settings that go with a backend on this run; those that depend on what is unknown are left out."""
    if backend == "deepep":
        return (_sm_knob(run, backend, str(int(_deepep_sms(run).value))),)
    if backend != "hybridep":
        return ()
    sweep = f"{HYBRIDEP_SMS.value:.0f}, then {HYBRIDEP_SMS_HARNESS.value:.0f}"
    return (*_topology(run), _sm_knob(run, backend, sweep))


def backend_variables(run: Run, backend: str) -> Mapping[str, str]:
    """What a backend has to be told of the machine, as knobs."""
    topology = run.config.hybrid_topology
    if backend != "hybridep" or topology is None:
        return {}
    return {
        "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": str(topology.ranks_per_domain),
        "env.USE_MNNVL": str(int(topology.multi_node)),
    }


def backend_notes(run: Run, backend: str) -> tuple[str, ...]:
    """What a backend asks of the rest of the configuration, and how far it can be trusted here."""
    if backend not in SM_KNOBS:
        return _alltoall_notes(run) if backend == "alltoall" else ()
    tuning = f"this SM count of {backend} is only a start: try several"
    return (*_flex_notes(run), tuning, *(_hybridep_notes(run) if backend == "hybridep" else ()))


def _flex_notes(run: Run) -> tuple[str, ...]:
    dtype = _spelled(run, "moe_router_dtype", "fp32")
    return (
        f"needs moe_token_dispatcher_type=flex, and fp32 router probabilities ({dtype})",
        (
            "Bridge's helper turns moe_shared_expert_overlap off; a fake process group cannot be combined "
            "with flex"
        ),
    )


def _deepep_sms(run: Run) -> Limit:
    family = run.config.gpu_family
    on_b200 = family is not None and family.name == "B200"
    return DEEPEP_SMS_B200_DSV3 if on_b200 and run.config.family == "dsv3" else DEEPEP_SMS


def sm_knob(run: Run, backend: str) -> str:
    """The knob of a backend's SM count in the run's release."""
    return SM_KNOBS[backend] if run.config.core_before("0.19.0") else SHARED_SM_KNOB


def _sm_knob(run: Run, backend: str, value: str) -> str:
    flag = _spelled(run, sm_knob(run, backend), value)
    if run.config.version_text("core") is None:
        return f"{flag} (before Megatron-Core 0.19: {_spelled(run, SM_KNOBS[backend])})"
    return flag


def _spelled(run: Run, knob: str, value: str = "") -> str:
    """A knob, with its value, as the run's framework takes it."""
    if run.settings.framework == "megatron_bridge":
        return f"{knobs()[knob].bridge}={value}" if value else knobs()[knob].bridge
    return f"{knobs()[knob].flag} {value}".strip()


def _topology(run: Run) -> tuple[str, ...]:
    topology = run.config.hybrid_topology
    if topology is None:
        return ()
    variables = backend_variables(run, "hybridep")
    told = tuple(f"{knob.removeprefix('env.')}={value}" for knob, value in variables.items())
    nodes, rest = divmod(topology.ranks_per_domain, int(GPUS_PER_NVL72_NODE.value))
    if topology.multi_node and nodes > 1 and not rest:  # one EP group inside one rack
        return (*told, f"--segment {nodes}")
    return told


def _hybridep_notes(run: Run) -> tuple[str, ...]:
    notes = ["HybridEP sends tokens in BF16; it cannot send FP8"] if is_low_precision(run) else []
    if run.config.hardware_class in ("hopper", "blackwell_nvl8", "ampere"):
        notes.append(
            "HybridEP depends on the topology: without NVL72 it is faster in some runs only, so compare"
        )
        if run.config.spans_domain:
            notes.append(
                "the EP group spans NVLink domains of eight GPUs, so HybridEP uses its inter-node path"
            )
    return tuple(notes)


def _alltoall_notes(run: Run) -> tuple[str, ...]:
    if run.config.container is None or "26.08" not in run.config.container:
        return ()
    return (
        "known issue of 26.08: alltoall of high EP can corrupt its payload on NCCL 2.30.5 with the SPCX "
        "plug-in; use NCCL's internal IB transport, or hybridep",
    )
