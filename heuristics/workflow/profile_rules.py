"""What the documents say of tuning once it runs: fix what shows, in the right order, on a fair baseline."""

from typing import Final

from heuristics.guides.facts import ep_share
from heuristics.guides.memory_use import fits
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated
from traces.spelling import chosen, percent

_PROFILE: Final = "a trace of this run"


def judge_order(run: Run) -> Judged:
    """A run that does not fit is no place for graphs and overlap, which take memory."""
    found = fits(run)
    if found is None:
        return unknown("it is unknown whether it fits", "a log or a trace")
    if found:
        return met("it fits, so that tuning may begin")
    on = [what for what, asked in _takes_memory(run) if asked]
    if on:
        return violated(
            f"it does not fit, with {' and '.join(on)} on", "leave them off until it fits", "MEM-2"
        )
    return met("it does not fit, and nothing that takes more memory is known to be on")


def _takes_memory(run: Run) -> tuple[tuple[str, bool], ...]:
    return (
        ("CUDA graphs", run.config.graph_impl not in (None, "none")),
        ("EP overlap", bool(run.config.ep_overlap)),
    )


def judge_dispatcher_as_fix(run: Run) -> Judged:
    """A dispatcher is chosen because its communication shows, not first of all."""
    asked, flex, share = run.config.dispatcher, run.config.flex, ep_share(run)
    if flex is None:
        return unknown("the dispatcher is not known", "moe_token_dispatcher_type of the configuration")
    if not flex:
        return met(f"{asked}: the safe path to begin with")
    if run.config.stage == "bring_up":
        return violated(f"{asked} while the run is brought up", "alltoall until it is correct", "COM-2")
    if share is None:
        return unknown(f"{asked}: whether expert all-to-all shows is not known", _PROFILE)
    return met(f"{asked}, with {percent(share)} of the step exposed to expert all-to-all")


def judge_visible_exchanges(run: Run) -> Judged:
    """Where expert all-to-all shows, the overlaps go with the dispatcher."""
    share = ep_share(run)
    if share is None:
        return unknown("how much expert all-to-all shows is not known", _PROFILE)
    if share < WALL.value:
        return not_applicable(f"expert all-to-all shows {percent(share)}, under {chosen(WALL.value)}")
    states = _overlaps(run)
    on = [name for name, state in states if state]
    off = [name for name, state in states if state is False]
    said = f"expert all-to-all shows {percent(share)}"
    if off and not on:
        return violated(f"{said}, and {', '.join(off)} overlap is off", "try one after the other", "COM-1")
    if on:
        return met(f"{said}, and {', '.join(on)} overlap is on")
    return unknown(f"{said}; which overlaps are on is not known", "the overlap switches of the configuration")


def _overlaps(run: Run) -> tuple[tuple[str, bool | None], ...]:
    return (
        ("EP", run.config.ep_overlap),
        ("DP", run.config.on("ddp.overlap_grad_reduce")),
        ("TP", run.config.on("tp_comm_overlap")),
    )


def judge_recipe_default(run: Run) -> Judged:
    """Most recipes leave EP overlap off; where all-to-all shows, it has to be asked for."""
    if run.config.expert_parallel is False:
        return not_applicable("experts are not spread over ranks")
    asked, share = run.config.ep_overlap, ep_share(run)
    if asked is None:
        return unknown(
            "whether EP overlap is asked for is not known",
            "overlap_moe_expert_parallel_comm of the configuration",
        )
    if asked:
        return met("EP overlap is asked for")
    if share is None:
        return unknown("EP overlap is off; how much expert all-to-all shows is not known", _PROFILE)
    if share < WALL.value:
        return met(f"EP overlap is off, and expert all-to-all shows {percent(share)} only")
    return violated(
        f"EP overlap is off, as most recipes leave it, and expert all-to-all shows {percent(share)}",
        "ask for it, where its needs are met",
        "COM-1",
    )


def judge_routing_mode(run: Run) -> Judged:
    """Forced balance is for benchmarks; two routing modes are no baselines for each other."""
    forced = run.config.on("moe_router_force_load_balancing")
    if forced or (forced is None and run.config.routing == "force_balance"):
        return met(
            "routing is forced to balance: a setting of benchmarks, which makes dispatchers comparable",
            "use it on both sides of a comparison; accept a change under real routing",
        )
    if forced is None and run.config.routing is None:
        return unknown("the routing mode is not known", "--routing, or the configuration")
    return met("real routing: hold it fixed while comparing")


def judge_platform(run: Run) -> Judged:
    """GB200 and GB300 meet the host first: processes bound to their NUMA node, or graphs."""
    hardware = run.config.hardware_class
    if hardware is None:
        return unknown("the GPU is not known", "--gpu-model")
    if hardware != "nvl72":
        return not_applicable(f"{hardware.replace('_', ' ')}: communication is the wall to expect")
    bound, graphs = run.config.on("launcher.numa_binding"), run.config.graph_impl
    if bound or graphs not in (None, "none"):
        return met("processes are bound to their NUMA node" if bound else "CUDA graphs are on")
    if bound is False and graphs == "none":
        return violated(
            "neither CPU binding nor CUDA graphs, where the host is the wall to expect",
            "bind each process to the NUMA node of its GPU; before a dispatcher swap",
            "HST-1",
        )
    return unknown("CPU binding or CUDA graphs are not known", "--cpu-bound-to-numa, and the configuration")


def judge_throughput(run: Run) -> Judged:
    """A run in low precision is compared by tokens a second: its peak is larger, and so its MFU smaller."""
    low = run.config.low_precision()
    if low is None:
        return unknown("the precision is not known", "--precision, or the configuration")
    if not low:
        return not_applicable("the run is not in low precision")
    if run.log is None or not run.log.iterations:
        return unknown("no step time is known", "a log with iteration times")
    return met("step times are logged: compare tokens/s a GPU")


_OF_EXPERTS: Final = ("dispatcher-as-fix", "visible-exchanges", "recipe-default", "routing-mode")

PROFILE_RULES: Final = tuple(
    WorkflowRule(f"profile-{name}", "profile", title, seed, judge, moe=name in _OF_EXPERTS)
    for name, title, seed, judge in (
        ("order", "Fit and layout before small optimizations", "003, Pitfalls, 1", judge_order),
        (
            "platform",
            "The platform decides which wall to expect",
            "003, Pitfalls, 2; 000, Key Interactions",
            judge_platform,
        ),
        (
            "dispatcher-as-fix",
            "The dispatcher is a fix, not the first knob",
            "002 and 003, Dispatcher And Overlap Guidance",
            judge_dispatcher_as_fix,
        ),
        (
            "visible-exchanges",
            "Visible all-to-all: overlaps go with the dispatcher",
            "003, Dispatcher And Overlap Guidance",
            judge_visible_exchanges,
        ),
        (
            "recipe-default",
            "Recipes leave EP overlap off: it has to be asked for",
            "004, Pitfalls, 4",
            judge_recipe_default,
        ),
        (
            "throughput",
            "Low precision is judged by absolute throughput, not by MFU alone",
            "003, Pitfalls, 3",
            judge_throughput,
        ),
        ("routing-mode", "One routing mode throughout", "000, Pitfalls, 4", judge_routing_mode),
    )
)
