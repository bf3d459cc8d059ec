"""Phase 2 of the workflow: how a run that fits is spread over more ranks."""

from typing import Final

from heuristics.guides.memory_use import ASK_MEMORY, fits, has_room_to_halve
from heuristics.run.run import Run
from heuristics.workflow.layout import layout_of
from heuristics.workflow.long_context import judge_long_context
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated

_SIZES: Final = "--tp, --cp, --pp, --ep and the number of ranks, or the configuration"


def judge_data_parallel_first(run: Run) -> Judged:
    """All ranks that memory does not need for the model carry copies of it."""
    layout = layout_of(run)
    if fits(run) is False:
        return not_applicable("it does not fit yet")
    if layout.tp is None or layout.cp is None or layout.pp is None:
        return unknown("TP, CP or PP is not known", _SIZES)
    split = layout.tp * layout.cp * layout.pp
    copies = f"TP{layout.tp} x CP{layout.cp} x PP{layout.pp} = {split} ranks a copy, DP{layout.dp or '?'}"
    if split == 1:
        return met(f"{copies}: every rank carries one")
    if layout.dp != 1 and run.config.on("ddp.use_distributed_optimizer") is False:
        return violated(
            f"{copies}, and every copy keeps all of the optimizer's state",
            "the distributed optimizer shares it out, so that fewer ranks hold a copy and DP grows",
            "COM-4",
        )
    room = has_room_to_halve(run)
    if room is None:
        return unknown(f"{copies}; whether fewer ranks could hold a copy is not known", ASK_MEMORY)
    if room and layout.tp * layout.pp > 1:
        more = "twice that" if layout.dp is None else f"DP{layout.dp * 2}"
        advice = f"{more} by half the TP or PP"
        return violated(f"{copies}, and half as many ranks would hold it", advice, "MEM-15")
    return met(f"{copies}, and memory needs them")


def judge_fast_domain(run: Run) -> Judged:
    """Tensor parallelism and expert exchanges, the hot paths, stay on NVLink."""
    layout, domain = layout_of(run), run.config.nvlink_domain
    tp, experts = layout.tp, layout.expert_ranks
    if domain is None:
        return unknown("the size of an NVLink domain is not known", "--nvlink-domain or --gpu-model")
    said = f"TP{tp or '?'} and EP x ETP = {experts or '?'}, in NVLink domains of {domain}"
    if run.config.moe() is False:
        said, experts = f"TP{tp or '?'}, in NVLink domains of {domain}", tp
    if tp is not None and tp > domain:
        return violated(said, f"TP up to {domain}; pipeline stages across nodes")
    if experts is not None and experts > domain:
        if beyond := _beyond_domain(run):
            return met(f"{said}, {beyond}")
        advice = "EP x ETP inside one domain where memory allows; else a dispatcher made for it, and overlap"
        return violated(said, advice, "COM-10")
    if tp is None or experts is None:
        return unknown(said, _SIZES)
    return met(said)


def _beyond_domain(run: Run) -> str:
    """What carries expert exchanges across domains, where something does, as in Megatron-Bridge's recipes."""
    if (backend := run.active.dispatcher) in ("deepep", "hybridep", "ncclep"):
        return f"which {backend} is made to leave"
    return "left under the overlap of expert all-to-all" if run.active.ep_overlap else ""


def judge_pipeline_across_nodes(run: Run) -> Judged:
    """Beyond one NVLink domain it is pipeline stages that scale, not wider TP."""
    layout, domain = layout_of(run), run.config.nvlink_domain
    if domain is None or layout.world is None or layout.pp is None or layout.tp is None:
        return unknown("the world, its NVLink domains, TP or PP are not known", f"{_SIZES}; --nvlink-domain")
    if layout.world <= domain:
        return not_applicable(f"{layout.world} ranks are inside one NVLink domain of {domain}")
    if layout.pp > 1:
        return met(f"PP{layout.pp} over {layout.world} ranks in domains of {domain}")
    hot = max(layout.tp, layout.expert_ranks or 1)
    if hot > domain and layout.tp <= domain and (beyond := _beyond_domain(run)):
        return met(f"PP1, and {hot} ranks share a layer over domains of {domain}, {beyond}")
    if hot > domain:
        return violated(
            f"PP1, and {hot} ranks share a layer over domains of {domain}",
            "pipeline stages across nodes, the ranks of a layer inside them",
            "MEM-8",
        )
    return met(f"PP1, and a layer stays inside a domain of {domain}")


def judge_virtual_stages(run: Run) -> Judged:
    """Pipeline stages without virtual ones wait longer, and cannot hide their transfers."""
    layout = layout_of(run)
    if layout.pp is None:
        return unknown("PP is not known", "--pp, or the configuration")
    if layout.pp == 1:
        return not_applicable("PP1")
    if layout.vpp is None:
        return unknown(f"PP{layout.pp}; virtual stages are not known", "--vpp, or the configuration")
    if layout.vpp > 1:
        return met(f"PP{layout.pp} with {layout.vpp} virtual stages a rank")
    return violated(
        f"PP{layout.pp} without virtual stages: the whole bubble, and transfers that nothing hides",
        "virtual stages; of the divisors of layers / PP a middle one is usual",
        "COM-6",
    )


SCALE_RULES: Final = (
    WorkflowRule(
        "scale-dp-first",
        "scale",
        "Data parallelism is as large as memory allows",
        "002 and 003, Phase 2, 1",
        judge_data_parallel_first,
    ),
    WorkflowRule(
        "scale-fast-domain",
        "scale",
        "Hot communication stays inside the fast domain",
        "002 and 003, Phase 2, 2",
        judge_fast_domain,
    ),
    WorkflowRule(
        "scale-pp-across-nodes",
        "scale",
        "Pipeline stages for more than one node",
        "002 and 003, Phase 2, 3",
        judge_pipeline_across_nodes,
    ),
    WorkflowRule(
        "scale-vpp",
        "scale",
        "Virtual stages where there are pipeline stages",
        "002 and 003, Phase 2, 3",
        judge_virtual_stages,
    ),
    WorkflowRule(
        "scale-cp-long-context",
        "scale",
        "CP for long context, and only for that",
        "002 and 003, Phase 2, 5",
        judge_long_context,
    ),
)
"""In the order of the documents, which is one of priority."""
