"""Which token dispatcher: NVIDIA's dispatcher guide as a table, less what a GPU or a version refuses.

The dispatcher is a fix for communication that is seen, not the first knob: where expert all-to-all costs
little, where the precision has just changed, where binding or the pipeline's layout comes first, the choice
says so.

With it go SM counts, the machine's topology, placement, and what it asks of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from heuristics.config.about import Guidance
from heuristics.guides.facts import ep_share, is_low_precision, pipeline_dominates
from heuristics.guides.table import OTHER, Refusal, Row, fire, table
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.limits import Limit
from traces.settings.knobs import knobs
from traces.settings.printed import change_of
from traces.settings.spelling import in_section, spell
from traces.spelling import percent

ALLTOALL: Final = "alltoall"
NOT_FIRST: Final = "not-first-knob"
"""The rule that keeps a dispatcher whose cost is small; no row, as it rests on what was measured."""


@dataclass(frozen=True, slots=True)
class DispatcherChoice:
    """What the guide chooses for a run.

    `first`: `alltoall`, `deepep` or `hybridep`; the dispatcher the run has, where it should be kept; or None
    where there is no winner: measure the `candidates`. `rule` names the row that fired, `guidance` its
    edition. `extras`: settings that go with it. `notes`: why, first, then what else matters. `before`: fixes
    that come before a swap. `asks`: options that would settle what is unknown and matters. `refused`:
    backends ruled out, why, and by whom. `other`: the other edition's choice, where it differs.
    """

    first: str | None
    candidates: tuple[str, ...]
    rule: str
    guidance: Guidance
    extras: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    sources: tuple[str, ...] = ()
    other: DispatcherChoice | None = None


def choose_dispatcher(run: Run) -> DispatcherChoice:
    """Choose for a run by its guidance; the other edition's choice stands beside it where it differs."""
    choice = _choose(run, run.config.guidance)
    other = _choose(run, OTHER[run.config.guidance])
    same = (choice.first, choice.candidates) == (other.first, other.candidates)
    return choice if same else replace(choice, other=other)


def _choose(run: Run, guidance: Guidance) -> DispatcherChoice:
    fired = fire(table("dispatcher")[guidance], run, lambda row: _allowed(row, refusals(run, row.answer)))
    row = fired.row
    refused = refusals(run, row.answer)
    first, candidates = _allowed(row, refused)
    out = {refusal.what: refusal.reason for refusal in refused}
    notes = [row.reason]
    if row.winner and (why := out.get(row.answer[0])):
        instead = first or " or ".join(candidates)
        notes.insert(0, f"{row.answer[0]} cannot be used here ({why}); {instead} instead")
    choice = DispatcherChoice(
        first,
        candidates,
        row.id,
        guidance,
        notes=tuple(notes),
        asks=fired.asks,
        refused=refused,
        sources=(row.source,),
    )
    return _complete(run, _swap_minded(run, choice), row)


def _allowed(row: Row, refused: Sequence[Refusal]) -> tuple[str | None, tuple[str, ...]]:
    """The first candidate, None where several are left without a winner; and all that are left."""
    out = {refusal.what for refusal in refused}
    candidates = tuple(name for name in row.answer if name not in out) or (ALLTOALL,)
    return (candidates[0] if row.winner or len(candidates) == 1 else None), candidates


def _swap_minded(run: Run, choice: DispatcherChoice) -> DispatcherChoice:
    """Keep the run's dispatcher, or name what comes before a swap, where a swap would be proposed."""
    now = run.active.dispatcher
    if now in ("none", "unknown") or now == choice.first or run.config.stage == "bring_up":
        return choice
    share = ep_share(run)
    if share is not None and share < WALL.value and not run.config.memory_tight:
        note = (
            f"expert all-to-all costs only {percent(share)} of the step: another dispatcher cannot save much"
        )
        return replace(choice, first=now, candidates=(now,), rule=NOT_FIRST, notes=(note,), asks=())
    before, asks = list(choice.before), list(choice.asks)
    if run.config.hardware_class == "nvl72" and not run.config.cpu_bound_to_numa:
        if run.config.cpu_bound_to_numa is None:
            asks.append("--cpu-bound-to-numa")
        else:
            before.append("HST-1")
    if pipeline_dominates(run):
        before.append("COM-6")
    return replace(choice, before=tuple(before), asks=tuple(asks))


_BEFORE_NOTES: Final = {
    "HST-1": "bind ranks to their CPU sockets first: on GB200 and GB300 this can save as much time",
    "COM-6": "pipeline waiting costs more than expert all-to-all: a poor PP or VPP layout can erase the gain",
}


def _complete(run: Run, choice: DispatcherChoice, row: Row) -> DispatcherChoice:
    """Add what goes with the dispatcher: settings, what it asks of the rest, what is still to be given."""
    backends = (choice.first,) if choice.first else choice.candidates
    extras = [extra for backend in backends for extra in backend_extras(run, backend)]
    notes = [*choice.notes, *(_BEFORE_NOTES[fix] for fix in choice.before)]
    notes += [note for backend in backends for note in backend_notes(run, backend)]
    if is_low_precision(run):
        notes.append(
            "in low precision, communication and host overhead take a larger share: after a change of "
            "precision, measure again before you change the dispatcher"
        )
    asks = list(choice.asks)
    if "hybridep" in backends:
        sizes = {"--ep": run.config.ep, "--nvlink-domain": run.config.nvlink_domain}
        asks += [option for option, size in sizes.items() if size is None]
    if choice.rule == row.id:
        extras += _of_framework(row.settings, run)
    return replace(choice, extras=_once(extras), notes=_once(notes), asks=_once(asks))


def _of_framework(flags: Sequence[str], run: Run) -> Sequence[str]:
    """Flags of Megatron-LM as the run's framework takes them."""
    if run.settings.framework != "megatron_bridge":
        return flags
    return spell(
        in_section(change_of(flags, "megatron_lm"), run.settings), "megatron_bridge", run.config.core_text
    )


def _once(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


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


def refusals(run: Run, backends: Sequence[str]) -> tuple[Refusal, ...]:
    """The backends of these that must not be chosen, each with every reason."""
    return tuple(
        Refusal(backend, rule.text, rule.source)
        for backend in backends
        for rule in limits(backend)
        if past_limit(rule, run.config)
    )
