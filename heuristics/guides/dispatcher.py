"""Which token dispatcher: NVIDIA's dispatcher guide as a table, less what a GPU or a version
refuses.

The dispatcher is a fix for communication that is seen, not the first knob: where expert all-to-all
costs little, where the precision has just changed, where binding or the pipeline's layout comes
first, the choice says so.

With it go SM counts, the machine's topology, placement, and what it asks of the rest.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import filterfalse
from typing import Final

from msgspec.structs import replace

from heuristics.config.about import Guidance
from heuristics.config.logic import each_once
from heuristics.guides.situation import ep_share
from heuristics.guides.table import Chosen, GuideRow, Refusal, fire
from heuristics.recipes import RECIPES
from heuristics.rules.check import limits, past_limit
from heuristics.rules.condition import RUNS, Condition
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import WALL
from traces.settings.knobs import knobs
from traces.settings.printed import change_of
from traces.settings.spelling import in_section, spell
from traces.texts import Texts
from traces.toml_tables import TableRow, keyed, place, read_rows, written

ALLTOALL: Final = "alltoall"
NOT_FIRST: Final = "not-first-knob"
"""The rule that keeps a dispatcher whose cost is small; no row, as it rests on what was
measured."""


@frozen
class DispatcherChoice(Chosen):
    """`first`: the backend to use, or the one that runs where it should be kept; None: measure
    `candidates`.

    `extras`: settings that go with it. `before`: fixes that come before a swap.
    """

    first: str | None
    candidates: Texts
    extras: Texts
    before: Texts


class Note(TableRow):
    """What else matters, by `dispatcher.toml`, which says what its fields are."""

    id: str
    text: str
    backends: Texts = ()
    when: Condition = RUNS.condition("True")
    before: str = ""
    option: str = ""


@cache
def _notes() -> Mapping[str, Note]:
    rows = keyed(written("heuristics.guides", "dispatcher.toml")["note"])
    return read_rows(
        rows, dict[str, Note], place("heuristics.guides", "dispatcher.toml"), RUNS.readers
    )


def choose_dispatcher(run: Run, edition: Guidance | None = None) -> DispatcherChoice:
    """Choose for a run by an edition of the guide, its own where none is named."""
    fired = fire("dispatcher", run, edition, partial(_allowed, run))
    row, asks = fired.row, fired.asks
    first, candidates = _allowed(run, row)
    notes, before, refused = [row.reason], [], []
    for backend in row.answer:
        refused += refusals(run, backend)
    if row.winner and (best := refusals(run, row.answer[0])):
        why, instead = best[-1].reason, first or " or ".join(candidates)
        notes.insert(0, say("guides.refused-here", backend=row.answer[0], why=why, instead=instead))
    now = run.active.dispatcher
    if now not in ("none", "unknown") and now != first and run.config.stage != "bring_up":
        share = ep_share(run)
        # exchanges cost too little for another dispatcher to pay
        if share is not None and share < WALL.value and not run.config.memory_tight:
            first, candidates, row, asks = now, (now,), replace(row, id=NOT_FIRST, settings=()), ()
            notes = [say("guides.costs-little", share_frac=share)]
        else:
            for note in _notes().values():
                holds = bool(note.before) and note.when.holds(run)
                if holds:
                    before.append(note.before)
                    notes.append(note.text)
                elif holds is None and note.option:
                    asks += (note.option,)
    backends, extras = (first,) if first else candidates, list[str]()
    for backend in backends:
        extras += backend_extras(run, backend)
        notes += backend_notes(run, backend)
    if run.tells("runs_low_precision"):
        notes.append(say("guides.low-precision"))
    of_sizes = run.tells("unknown_topology") if "hybridep" in backends else ()
    return DispatcherChoice(
        row=row,
        first=first,
        candidates=candidates,
        extras=each_once((*extras, *_of_framework(row.settings, run))),
        before=tuple(before),
        notes=each_once(notes),
        asks=each_once((*asks, *of_sizes)),
        refused=tuple(refused),
    )


def _allowed(run: Run, row: GuideRow) -> tuple[str | None, Texts]:
    """The first candidate, None where several are left without a winner; and all that are left."""
    candidates = tuple(filterfalse(partial(refusals, run), row.answer)) or (ALLTOALL,)
    return (candidates[0] if row.winner or len(candidates) == 1 else None), candidates


def _of_framework(flags: Sequence[str], run: Run) -> Sequence[str]:
    """Flags of Megatron-LM as the run's framework takes them."""
    if run.settings.framework != "megatron_bridge":
        return flags
    return spell(
        in_section(change_of(flags, "megatron_lm"), run.settings),
        "megatron_bridge",
        run.config.core_text,
    )


SM_KNOBS: Final = {"deepep": "moe_deepep_num_sms", "hybridep": "moe_hybridep_num_sms"}
SHARED_SM_KNOB: Final = "moe_flex_dispatcher_num_sms"
"""Takes the place of both from Megatron-Core 0.19; the two old ones set differently raise there."""


def backend_extras(run: Run, backend: str) -> Texts:
    """Settings that go with a backend on this run; those that depend on what is unknown are left
    out.
    """
    if backend == "deepep":
        on_b200 = run.config.gpu_family is not None and run.config.gpu_family.name == "B200"
        few = "deepep_sms_b200_dsv3" if on_b200 and run.config.family == "dsv3" else "deepep_sms"
        return (_sm_knob(run, backend, str(RECIPES[few].whole)),)
    if backend != "hybridep":
        return ()
    sweep = say(
        "guides.sweep",
        first=RECIPES["hybridep_sms"].whole,
        last=RECIPES["hybridep_sms_harness"].whole,
    )
    return (*_topology(run), _sm_knob(run, backend, sweep))


def backend_variables(run: Run, backend: str) -> Mapping[str, str]:
    """What a backend has to be told of the machine, as knobs."""
    topology = run.config.hybrid_topology
    if backend != "hybridep" or not topology:
        return {}
    return {
        "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": str(topology.ranks_per_domain),
        "env.USE_MNNVL": str(int(topology.multi_node)),
    }


def backend_notes(run: Run, backend: str) -> Texts:
    """What a backend asks of the rest of the configuration, and how far it can be trusted here."""
    words = {"router_dtype": _spelled(run, "moe_router_dtype", "fp32")}
    of_backend = (note for note in _notes().values() if backend in note.backends)
    return tuple(RUNS.filled(note.text, run, words) for note in of_backend if note.when.holds(run))


def sm_knob(run: Run, backend: str) -> str:
    """The knob of a backend's SM count in the run's release."""
    if run.config.core_before("0.19.0"):
        return SM_KNOBS[backend]
    return SHARED_SM_KNOB


def _sm_knob(run: Run, backend: str, value: str) -> str:
    flag = _spelled(run, sm_knob(run, backend), value)
    if run.config.version_text("core") is None:
        return say("guides.older-knob", flag=flag, older=_spelled(run, SM_KNOBS[backend]))
    return flag


def _spelled(run: Run, knob: str, value: str = "") -> str:
    """A knob, with its value, as the run's framework takes it."""
    if run.settings.framework == "megatron_bridge":
        if value:
            return f"{knobs()[knob].bridge}={value}"
        return knobs()[knob].bridge
    return f"{knobs()[knob].flag} {value}".strip()


def _topology(run: Run) -> Texts:
    topology = run.config.hybrid_topology
    if not topology:
        return ()
    variables = backend_variables(run, "hybridep")
    lines = tuple(f"{knob.removeprefix('env.')}={value}" for knob, value in variables.items())
    nodes, odd_ranks = divmod(topology.ranks_per_domain, RECIPES["node_of_nvl72"].whole)
    if topology.multi_node and nodes > 1 and not odd_ranks:  # one EP group inside one rack
        return (*lines, f"--segment {nodes}")
    return lines


def refusals(run: Run, backend: str) -> list[Refusal]:
    """Every reason why a backend must not be chosen."""
    return [
        Refusal(backend, rule.text, rule.source)
        for rule in limits(backend)
        if past_limit(rule, run.config)
    ]
