"""Findings that compute the figures of their rows: overlaps that hide nothing, memory, what the log
says.

Sources: Megatron-LM at core_v0.18.2, pipeline_parallel/combined_1f1b.py (the first forward and the
last backward run alone) and distributed/distributed_data_parallel.py; its pull request 6311 (one
hardware queue); Megatron-Bridge at 067f987d, training/comm_overlap.py and docs/performance-guide.md
(norms and collectives).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median
from typing import Final

from heuristics.comparison.files.logs import drift_of_steps
from heuristics.findings.case import Case
from heuristics.findings.passes import layer_passes
from heuristics.fixes.catalogue import CATALOGUE, ROOM_ORDER
from heuristics.guides.memory_use import HEAD_ROOM, estimated, too_large
from heuristics.guides.parallel import connections
from heuristics.recipes import RECIPES
from heuristics.rules.check import broken, undecided
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import HALF_A_WALL, WALL, Limit
from traces.missing import Missing
from traces.settings.effective import effective
from traces.settings.knobs import CP, EP, ETP, GLOBAL_BATCH, PP, TP
from traces.settings.precision import configured_precision
from traces.settings.settings import KnobView, Settings, Values
from traces.sizes.memory import delta
from traces.sizes.peaks import peak_precision
from traces.sizes.throughput import throughput
from traces.spelling import gigabytes, in_ms, percent, rounded
from traces.training_log.iterations import steady_step
from traces.training_log.own_lines import logged_run

_SIZES: Final = {EP: "EP", ETP: "ETP", TP: "TP", CP: "CP", PP: "PP"}
Found = Mapping[str, object]
"""Figures of a finding, by their names in the texts of its row."""

OVERWRITTEN: Final = {
    "overlap_moe_expert_parallel_comm": "EP overlap",
    "delay_wgrad_compute": "delayed weight gradients",
    "tp_comm_overlap": "TP overlap",
}
"""Fields of the model that Megatron-Bridge's CommOverlapConfig writes, False where it says
nothing."""
FACTOR: Final = Limit(
    1.6,
    "times",
    "ours: formulas of releases differ by up to a third (attention, MTP); half or twice is another "
    "run",
)
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
_MARGINS: Final = ("env.NVTE_FWD_LAYERNORM_SM_MARGIN", "env.NVTE_BWD_LAYERNORM_SM_MARGIN")
_WORLD: Final = "world_size"


def _traffic(case: Case) -> Iterator[Found]:
    """Parallel sizes that are configured as 1 while the trace has their traffic, or that of one of
    them.
    """
    config, shown = case.run.config, case.run.observed
    for knob in config.refuted:
        name = _SIZES[knob]
        id = name.lower()
        yield _size_of_one(case, id, {knob: name}, say(f"findings.sent-{id}"))
    if shown.dp_active and config.dp == config.cp == 1:
        yield _size_of_one(case, "dp", {_WORLD: "DP"}, "data-parallel collectives")
    pairs = {PP: "PP", CP: "CP", EP: "EP"}
    muon = config.word("optimizer.optimizer") == "dist_muon"
    is_alone = {*map(config.size, (*pairs, ETP))} == {1} and not muon
    if shown.sendrecv_unresolved and is_alone:
        yield _size_of_one(case, "sendrecv", pairs, "send and receive between ranks")


def _size_of_one(case: Case, id: str, sizes: Mapping[str, str], what: str) -> Found:
    first = next(iter(sizes))
    *names_before, last = (f"{name} 1" for name in sizes.values())
    names = f"{', '.join(names_before)} and {last} are" if names_before else f"{last} is"
    return {
        "id": id,
        "names": names,
        "what": what,
        "knob": first,
        "where": case.run.config.where(first),
    }


def _overwritten(case: Case) -> Iterator[Found]:
    files = case.files
    for knob, name in OVERWRITTEN.items():
        section = f"comm_overlap.{knob}"
        if (
            files.written.value(knob) is True
            and files.on(knob) is False
            and files.value(section) is not True
        ):
            recipe = (
                f"false ({files.where(section)})"
                if files.known(section)
                else say("findings.of-recipe")
            )
            where = files.written.said(knob)
            yield {
                "id": knob.replace("_", "-"),
                "knob": knob,
                "name": name,
                "chosen": recipe,
                "where": where,
            }


def _gradients_overwritten(case: Case) -> Iterator[Found]:
    """What DDP says of an overlap while a CommOverlapConfig says the opposite, but for one
    recipe.
    """
    files, written = case.files, case.files.written
    for knob in ("overlap_grad_reduce", "overlap_param_gather"):
        own, over = f"ddp.{knob}", f"comm_overlap.{knob}"
        ddp, ours = written.value(own), files.value(over)
        of_recipe = (
            written.said(own) == written.said(over) and written.value("launcher.recipe") is not None
        )
        if not of_recipe and isinstance(ours, bool) and isinstance(ddp, bool) and ddp != ours:
            states = {"ddp": "on" if ddp else "off", "overlap": "on" if ours else "off"}
            yield {"knob": knob, **states, "where": written.said(own), "over": files.where(over)}
            return


def _expert_overlap(case: Case) -> Iterator[Found]:
    run, packed = case.run, "overlap-energon-off"
    if not case.files.ep_overlap or run.observed.ep_overlap is not False:
        return
    section, causes = f"comm_overlap.{_OVERLAP}", {**_refused_at_defaults(run), **_one_queue(case)}
    if case.files.microbatches == 1:
        causes = {say("findings.one-microbatch"): say("findings.more-microbatches"), **causes}
    if packed in case.lines:
        causes = {say("findings.packed"): say("findings.unpacked"), **causes}
    yield {
        "where": case.files.where(section if case.files.known(section) else _OVERLAP),
        "packed": say("findings.packed-at", line=case.line_of(packed))
        if packed in case.lines
        else "",
        **_because(causes, say("findings.check-schedule")),
    }


def _refused_at_defaults(run: Run) -> dict[str, str]:
    """Rules of EP overlap that the run breaks where what its file leaves out has its default."""
    cures = {}
    for rule_left in undecided(run.as_written):
        rule = rules()[rule_left.id]
        if rule_left.broken_by_default and rule.feature and "ep_overlap" in rule.feature.names:
            cures[rule.text] = rule.cure
    return cures


def _data_overlap(case: Case) -> Iterator[Found]:
    run, files = case.run, case.files
    wanted = {"dp_reduce_scatter": "overlap_grad_reduce", "dp_all_gather": "overlap_param_gather"}
    kinds = tuple(kind for kind, switch in wanted.items() if files.overlap(switch))
    cost_ns = run.cost_ns("communication", kinds) if kinds else None
    if cost_ns is None or not run.window_ns or cost_ns / run.window_ns < WALL.value:
        return
    causes = _one_queue(case)
    if files.framework == "megatron_bridge" and files.distributed_optimizer is False:
        causes = {say("findings.not-distributed"): "ddp.use_distributed_optimizer=true", **causes}
    if not any(map(files.value, _MARGINS)):
        margins = (
            f"{knob.removeprefix('env.')}={RECIPES['norm_margin'].whole}" for knob in _MARGINS
        )
        causes[say("findings.no-margin")] = " ".join(margins)
    exposed = percent(cost_ns / run.window_ns)
    because = _because(causes, say("findings.check-buckets"))
    yield {"kinds": " and ".join(kinds), "exposed": exposed, **because}


def _one_queue(case: Case) -> dict[str, str]:
    queues = connections(case.run, ep_overlap=case.files.ep_overlap)
    if queues == 1 or not case.files.env_is("CUDA_DEVICE_MAX_CONNECTIONS", "1"):
        return {}
    return {say("findings.one-queue"): f"CUDA_DEVICE_MAX_CONNECTIONS={queues}"}


def _because(causes: Mapping[str, str], checks: str) -> Found:
    """`causes`: why an overlap hides nothing -> the change that meets it."""
    return {"causes": "; ".join(("", *causes)), "fix": "; ".join(causes.values()) or checks}


def _memory_estimate(case: Case) -> Iterator[Found]:
    """The fullest rank needs more memory than there is, by the estimate: certain only beyond its
    error.
    """
    run = case.run
    estimate = None if run.tells("memory_is_told") else too_large(run)
    if estimate is None:
        return
    needed = estimate.estimate_bytes - round(estimate.capacity_bytes * (1 - HEAD_ROOM.value))
    named = ", ".join(_freed(run, needed))
    yield {
        "where": f"pipeline stage {estimate.stage}" if (run.config.pp or 1) > 1 else "each GPU",
        "estimate": gigabytes(estimate.estimate_bytes),
        "least": gigabytes(estimate.least_bytes),
        "most": gigabytes(estimate.most_bytes),
        "gpu": run.gpu or "GPU",
        "capacity": gigabytes(estimate.capacity_bytes),
        "fix": say("findings.frees", fixes=named) if named else say("findings.nothing-frees"),
    }


def _freed(run: Run, needed: int) -> Iterator[str]:
    """Memory fixes in their order until the estimate fits: what each sets and frees on top of those
    before.

    None that a rule refuses there, that excludes one before, or that frees next to nothing.
    """
    before, total = broken(run), 0
    now, taken, excluded = run, set[str](), set[str]()
    for name in ROOM_ORDER:
        fix = CATALOGUE[name]
        changes = fix.change(now).in_run(now)
        is_excluded = taken & {*fix.excludes} or name in excluded
        if total >= needed or not changes or is_excluded:
            continue
        then = now.changed(changes)
        added = delta(estimated(now), estimated(then))
        if (
            isinstance(added, Missing)
            or -added < HALF_A_WALL.value * needed
            or not broken(then) <= before
        ):
            continue
        now, total = then, total - added
        taken.add(name)
        excluded.update(fix.excludes)
        if what := _in_short(changes):
            yield say("findings.frees-with", fix=name, what=what, freed_bytes=-added)
        else:
            yield say("findings.frees-one", fix=name, freed_bytes=-added)


def _in_short(changes: Values) -> str:
    """The sizes and modules of a change."""
    sizes = (f"{short} {changes[knob]}" for knob, short in _SIZES.items() if changes.get(knob))
    modules = changes.get("recompute_modules")
    return ", ".join((*sizes, *map(str, modules if isinstance(modules, tuple) else ())))


def _global_batch(case: Case) -> Iterator[Found]:
    """Steady steps of another global batch; a batch that grows by plan is no contradiction."""
    written = case.files.written
    own, logged = written.by_knob.get(GLOBAL_BATCH), _logged(case.run).by_knob.get(GLOBAL_BATCH)
    if own is None or logged is None or written.value("train.rampup_batch_size") is not None:
        return
    if own.value not in (None, logged.value):
        yield {
            "logged": logged.value,
            "asked": own.value,
            "logged_at": logged.said,
            "where": own.said,
        }


def _world_size(case: Case) -> Iterator[Found]:
    written, logged = case.files.written, _logged(case.run).by_knob.get(_WORLD)
    wanted = case.run.given.world_size or written.value(_WORLD)
    if logged is not None and wanted not in (None, logged.value):
        where = written.said(_WORLD) if written.value(_WORLD) == wanted else "--world-size"
        yield {"logged": logged.value, "asked": wanted, "logged_at": logged.said, "where": where}


def _precision(case: Case) -> Iterator[Found]:
    own = case.run.log.settings if case.run.log else None
    if own is None:
        return
    ran = configured_precision(KnobView(effective(own, case.run.config.core_text)))
    files = case.files
    if ran and files.precision and peak_precision(ran) != peak_precision(files.precision):
        where = {"logged_at": _precision_at(own), "where": _precision_at(files.written)}
        yield {"logged": ran, "asked": files.precision, **where}


def _throughput(case: Case) -> Iterator[Found]:
    """The trainer's own TFLOP/s against those of sizes and step, by the batch and ranks of the
    log.
    """
    run, steady = case.run, steady_step(case.run.log)
    printed = [step.tflops_per_gpu for step in steady.used if step.tflops_per_gpu] if steady else []
    if steady is None or not printed:
        return
    own = _logged(run)
    rates = throughput(run.config.settings, steady.median_ns, run.gpu, run.precision, own)
    if isinstance(rates, Missing) or not rates.model_tflops_per_gpu:
        return
    logged, computed = median(printed), rates.model_tflops_per_gpu
    if 1 / FACTOR.value < computed / logged < FACTOR.value:
        return
    config, logs = run.config, KnobView(own)
    yield {
        "logged": rounded(logged),
        "computed": rounded(computed),
        "factor": f"{computed / logged:.2g}",
        "logged_at": f"{run.log.name}:{steady.used[-1].line}" if run.log else "",
        "batch": logs.positive(GLOBAL_BATCH) or config.global_batch or 0,
        "world": logs.positive(_WORLD) or config.world or 0,
    }


def _drifting(case: Case) -> Iterator[Found]:
    """Steady steps of a log that get longer by as much as a wall."""
    steady = steady_step(case.run.log)
    drift = drift_of_steps(steady.used) if steady else None
    if case.run.log is None or steady is None or drift is None or drift.state != "rising":
        return
    if drift.change < WALL.value * drift.first:
        return
    dense = case.run.config.moe() is False
    yield {
        "first": in_ms(round(drift.first)),
        "last": in_ms(round(drift.last)),
        "since": steady.used[0].index,
        "until": steady.used[-1].index,
        "growth": percent(drift.change / drift.first),
        "logged_at": case.run.log.name,
        "fix": say("findings.drifting" if dense else "findings.drifting-moe"),
    }


def _logged(run: Run) -> Settings:
    if run.log is None:
        return Settings()
    return logged_run(run.log, steady_step(run.log))


def _precision_at(settings: Settings) -> str:
    knob = next(filter(settings.value, ("mixed_precision", "fp4", "fp8", "bf16", "fp16")), "")
    if knob:
        return f"{knob} in {settings.said(knob)}"
    return say("findings.default-precision")


COMPUTED: Final[Mapping[str, Callable[[Case], Iterable[Found]]]] = {
    "CFG-counts-differ": layer_passes,
    "CFG-traffic-{id}": _traffic,
    "CFG-overwritten-{id}": _overwritten,
    "CFG-overwritten-ddp-overlap": _gradients_overwritten,
    "CFG-ep-overlap-not-active": _expert_overlap,
    "CFG-dp-overlap-not-active": _data_overlap,
    "CFG-memory-estimate": _memory_estimate,
    "CFG-log-global-batch": _global_batch,
    "CFG-log-world-size": _world_size,
    "CFG-log-precision": _precision,
    "CFG-log-throughput": _throughput,
    "CFG-log-drift": _drifting,
}
"""What computes the figures in the texts of an id, one finding each; texts of the others name
facts."""
