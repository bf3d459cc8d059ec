"""Sentences about a document, unwrapped, for every format that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.words import kind_words, milliseconds, percent, printable, wall_words

SPELLINGS: Final = (
    ("megatron_lm", "Megatron-LM"),
    ("megatron_bridge", "Bridge"),
    ("bridge_harness", "Bridge's scripts/performance"),
    ("environment", "environment"),
    ("pytorch", "PyTorch"),
)
"""Keys of a fix's knobs and what they are called."""


def between(name: str) -> str:
    """What stands between settings of a spelling: PyTorch's are sentences, flags and variables are words."""
    return "; " if name == "PyTorch" else " "


_SAID: Final = (
    "steps.median_ns",
    "totals",
    "totals.comm_union_ns",
    "process",
    "absent_ns",
    "exposed_comm_by_kind_ns.sendrecv_unresolved",
    "exposed_comm_by_kind_ns.other_comm",
)
"""Gaps of a rank that are said where people read; all are in the JSON document."""


def wall_sentence(document: Document) -> str:
    """The wall and its ceiling, or why there is none."""
    verdict = document["verdict"]
    if verdict["wall"] is None:
        judged = any(wall["outcome"] != "unmeasurable" for wall in document["walls"])
        return f"{'no wall' if judged else 'none'}: {verdict['because'][0]}."
    wall = next(one for one in document["walls"] if one["id"] == verdict["wall"])
    kind = f" ({kind_words(verdict['kind'])})" if verdict["kind"] else ""
    why: str = verdict["because"][0]
    said = f"{wall_words(wall['id'])}{kind}."
    if not wall["cost_frac"] or "allocated again" in why:
        said += f" {why[:1].upper()}{why[1:]}."
    if wall["cost_frac"]:
        said += f" Without it the run would be at most {percent(wall['cost_frac'])} shorter."
    return said


def outcome_words(wall: dict[str, Any]) -> str:
    """An outcome, with the most that the wall can cost where that is more than its cost."""
    called = "not measurable" if wall["outcome"] == "unmeasurable" else str(wall["outcome"])
    price = [one["value"] for one in wall["evidence"] if one["measure"] == "cost_frac"]
    most = wall.get("at_most_frac")  # results of earlier versions have none
    if most is None or most >= 1.0 or percent(most) in (percent(one) for one in price):
        return called
    return f"{called}, up to {percent(most)}"


def _in_first_step(wall: Document) -> str:
    held = [one for one in wall["evidence"] if one["measure"] == "steady_cost_frac"]
    return ", nearly all in the first step" if held and held[0]["value"] < held[0]["limit"] else ""


def verdict_sentences(document: Document) -> Iterator[str]:
    """What the wall is tied with, how sure that is, what bounds the run."""
    verdict = document["verdict"]
    yield from _traffic(document)
    yield from _on_cuda_cores(document)
    if verdict["tied_with"]:
        tied = " and ".join(map(wall_words, verdict["tied_with"]))
        yield f"Tied with {tied}: their costs cannot be told apart."
    if verdict["confidence"]:
        why = "; ".join(verdict["confidence_because"]) or "nothing speaks against it"
        yield f"Confidence {verdict['confidence']}: {why}."
    if following := verdict.get("next_because"):  # results of earlier versions have none
        yield f"{following[:1].upper()}{following[1:]}."
    share = percent(verdict["largest_bucket_frac"])
    of = "the window" if len(document["ranks"]) == 1 else f"the windows of {len(document['ranks'])} ranks"
    others = [
        f"{wall_words(wall['id'])}, at most {percent(wall['cost_frac'])}{_in_first_step(wall)}"
        for wall in document["walls"]
        if wall["outcome"] == "finding" and wall["id"] != verdict["wall"] and wall["cost_frac"]
    ]
    if others:
        yield f"Also found: {'; '.join(others)}. Costs overlap: they do not add up."
    bound = f"Bound by {wall_words(verdict['bound'])}" if verdict["bound"] else "What bounds it is not told"
    yield f"{bound}; the largest bucket is {_largest(document)}, {share} of {of}."
    yield f"{verdict['because'][-1][:1].upper()}{verdict['because'][-1][1:]}."
    yield from unknown_sentences(document)


def unknown_sentences(document: Document) -> Iterator[str]:
    """Kernels of unknown class that are findings: each once, where it fills most of a window."""
    found = [
        (kernel, rank)
        for rank in document["ranks"]
        for kernel in rank["unknown_kernels"]
        if kernel["finding"]
    ]
    found.sort(key=lambda one: -one[0]["frac"])
    named: set[str] = set()
    for kernel, rank in found:
        if kernel["name"] not in named:
            named.add(kernel["name"])
            of = "" if len(document["ranks"]) == 1 else f" of {who(rank)}"
            yield f"{_unknown_kernel(kernel)}{of}. Its class is unknown: no rule names it."


def _unknown_kernel(kernel: dict[str, Any]) -> str:
    """Its share of the window, and how that is made up."""
    per_step = "" if kernel["per_step_ns"] is None else f"{milliseconds(kernel['per_step_ns'])} ms per step, "
    grid = "" if kernel["grid"] is None else f", grid {' x '.join(map(str, kernel['grid']))}"
    launches = f"{kernel['count']:,} launch{'es' if kernel['count'] > 1 else ''}"
    figures = f"{per_step}{launches} of {milliseconds(kernel['mean_ns'])} ms on average{grid}"
    return f"Kernel {printable(kernel['name'], 60)} runs {percent(kernel['frac'])} of the window ({figures})"


def _traffic(document: Document) -> Iterator[str]:
    """Of walls that were found, what moves between host and GPU."""
    for wall in document["walls"]:
        seen = {one["measure"]: one["value"] for one in wall["evidence"]}
        for kind in ("host_resident", "offload"):
            if wall["outcome"] == "finding" and f"{kind}_bytes" in seen:
                count, gigabytes = seen[f"{kind}_copies"], seen[f"{kind}_bytes"] / 1e9
                speed = seen[f"{kind}_gb_per_s"]
                of = "" if len(document["ranks"]) == 1 else " on each GPU"
                what = kind_words(kind)
                yield f"{what[:1].upper()}{what[1:]}{of}: {count:,}, {gigabytes:.1f} GB, {speed:.1f} GB/s."


def _on_cuda_cores(document: Document) -> Iterator[str]:
    """GEMMs that do without tensor cores, where compute was found."""
    for wall in document["walls"]:
        seen = {one["measure"]: one["value"] for one in wall["evidence"]}
        if wall["outcome"] == "finding" and "simt_gemm_count" in seen:
            count, share = seen["simt_gemm_count"], percent(seen["simt_gemm_frac"])
            yield f"{count:,} GEMMs run in FP32 without tensor cores, {share} of the GEMM work."


def replay_sentences(document: Document) -> Iterator[str]:
    """The two proofs of each rank's replay: how far it is off, and how much of it is GPU work."""
    for rank in document["ranks"]:
        if (proofs := rank["replay"]) is None:
            continue
        of = "" if len(document["ranks"]) == 1 else f" of {who(rank)}"
        off, waits = percent(proofs["residual_free_error_frac"]), percent(proofs["unexplained_frac"])
        saved = percent(proofs["elastic_frac"])
        without = f"without unexplained waits ({waits} of the window) its length is off by {off}"
        halved = f"with all GPU work halved it shrinks by {saved} (bound by the GPU: about 50 %)"
        yield f"Two checks of the replay{of}: {without}; {halved}."


def _largest(document: Document) -> str:
    bucket: str = document["verdict"]["largest_bucket"]
    if bucket == "compute" and all(map(replays_only, document["ranks"])):
        return "busy"
    if bucket == "idle" and any(gap["path"].endswith(".graph_launches") for gap in document["missing"]):
        return "idle, or work of CUDA graphs that was not recorded"
    return bucket


def replays_only(rank: dict[str, Any]) -> bool:
    """Whether compute cannot be told from communication, so that it is only called busy."""
    return rank["budget_ns"]["exposed_comm"] is None


def origin(trace: dict[str, Any]) -> str:
    """Who wrote a trace."""
    schema = trace["schema"] or "none"
    if trace["kind"] == "kineto":
        return f"recorded by the PyTorch profiler, schema {schema}"
    return f"exported by nsys {trace['exporter_version'] or 'of unknown version'}, schema {schema}"


def who(rank: dict[str, Any]) -> str:
    """A rank: its number, process and GPU."""
    process = "process not recorded" if rank["process"] is None else f"process {rank['process']}"
    number = "" if rank["rank"] is None else f"rank {rank['rank']}, "
    return f"{number}{process}, GPU {rank['device']} ({rank['gpu'] or 'model not recorded'})"


def choice_sentences(document: Document, everything: bool) -> Iterator[str]:
    """What the guides choose, with the rule; all of it, or only where their two editions differ."""
    newest, seed = "main-2026-08", "seed"
    guidance = document["tool"]["guidance"]
    for choice in document["choices"]:
        if not (everything or choice["other"]):
            continue
        edition = seed if guidance == newest else newest
        other = f"; the {edition} edition: {choice['other']}" if choice["other"] else ""
        about = choice["about"].replace("_", " ")
        said = f"Guide on {about} ({guidance}, rule {choice['rule']}): {choice['answer']}{other}."
        if everything and choice["settings"]:
            said += f" With {', '.join(choice['settings'])}."
        if everything and choice["asks"]:
            said += f" To settle it: {', '.join(choice['asks'])}."
        yield said


def lever_sentence(document: Document) -> str:
    """What introduces levers, where no wall was found."""
    measured = all(wall["cost_frac"] is not None for wall in document["walls"])
    called = "No fix is called for" if measured else "Nothing that could be measured calls for a fix"
    return f"{called}. What still makes a full GPU faster:"


def fix_title(fix: dict[str, Any]) -> str:
    """Title of a fix and what it wins."""
    gain = gain_words(fix["gain_frac"])
    return f"{fix['title']}. {gain[:1].upper()}{gain[1:]}.".removesuffix(" .")


LOSS: Final = 0.0005
"""A lower end below zero by less is none that a figure with one decimal shows."""


def gain_words(gain_frac: list[float | None] | None) -> str:
    """What a fix wins: a range, a ceiling where there is no lower end, nothing where there is neither."""
    if gain_frac is None or gain_frac[1] is None:
        return ""
    low, high = gain_frac[0], gain_frac[1]
    if low is None:
        return f"at most {percent(high)} of the step"
    if low <= -LOSS:
        return f"wins at most {percent(high)} of the step, or loses up to {percent(-low)}"
    if percent(max(0.0, low)) == percent(high):
        return f"wins {percent(high)} of the step"
    return f"wins {percent(max(0.0, low)).removesuffix(' %')} to {percent(high)} of the step"


def sharing_sentences(fixes: list[dict[str, Any]]) -> Iterator[str]:
    """What fixes win is in part the same, so that it must not be added; one sentence a group of them."""
    groups: list[list[str]] = []
    for fix in fixes:
        others = {*fix.get("shares_with", ())}  # results of earlier versions have none
        joined = [group for group in groups if others & {*group}]
        groups = [group for group in groups if group not in joined]
        groups.append([*(one for group in joined for one in group), fix["id"]])
    for group in groups:
        if len(group) > 1:
            yield f"{', '.join(group[:-1])} and {group[-1]} act on the same costs: their gains do not add up."


def needs(fix: dict[str, Any]) -> Iterator[str]:
    """Preconditions of a fix that are not met, or not known to be."""
    for one in fix["preconditions"]:
        if one["state"] != "met":
            cure = f" ({one['cure']})" if one["cure"] else ""
            yield f"{'needs' if one['state'] == 'unmet' else 'check'}: {one['text']}{cure}"


def advice(document: Document) -> list[str]:
    """Gaps of the recording that matter, each with its cure, and what the recording itself notes."""
    said = []
    for gap in document["missing"]:
        place, _, key = gap["path"].partition(".")
        if (place.startswith("ranks[") and key in _SAID) or key in ("graph_launches", "graph_replays"):
            reason, cure = gap["reason"].rstrip("."), gap["cure"].rstrip(".")
            tell = f" To tell: {cure}." if is_cure(cure) else ""
            said.append(f"{reason[:1].upper()}{reason[1:]}.{tell}")
    for wall in document["walls"]:
        if wall["cost_frac"] is None and is_cure(wall["cure"]):
            said.append(f"To judge {wall_words(wall['id'])}: {wall['cure'].rstrip('.')}.")
    for trace in document["traces"]:
        said += [f"The recording notes: {note}." for note in trace["capture"]["diagnostics"]]
    return list(dict.fromkeys(said))


def is_cure(cure: str) -> bool:
    """Whether there is something to do: cures of what nothing can tell say "none", and why."""
    return bool(cure) and re.match(r"none\b", cure) is None


FRAMEWORKS: Final = {"pytorch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}


def framework_sentence(document: Document) -> str:
    """Whose settings the plan names where they are not Megatron's; empty for Megatron."""
    framework = document["framework"]
    untrained = any(rank["detected"]["training_step"] is False for rank in document["ranks"])
    planned = bool(document["fixes"] or document["levers"])
    if framework == "megatron" or (untrained and not planned):
        return ""
    seen = f" They show {FRAMEWORKS[framework]}." if framework in FRAMEWORKS else ""
    if framework == "pytorch" and planned:
        seen = " The plan is for PyTorch, which they show."
    said = "Not Megatron, as far as kernel and range names show: its flags are left out."
    return f"{said}{seen} If it is Megatron, give --config FILE."


def no_plan_sentence(document: Document) -> str:
    """What stands in place of a plan."""
    untrained = [rank for rank in document["ranks"] if rank["detected"]["training_step"] is False]
    if untrained:
        why = untrained[0]["detected"]["training_evidence"]
        return f"This is not a training step: {why}; so no fix is planned."
    if document["verdict"]["wall"] and not document["refused"]:
        return "No change is planned: none is known here for this framework."
    return f"No change is planned: {document['verdict']['because'][0]}."
