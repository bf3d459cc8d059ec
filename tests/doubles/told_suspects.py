"""Differences told in words for the tests of suspects: `gemm 40>50; + fp8 null>hybrid`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.suspects.find import find_suspects
from heuristics.result.compared import (
    ComparedChange,
    ComparedRow,
    Exchange,
    Exchanges,
    ExchangeSum,
    Suspect,
    Worked,
)
from tests.doubles.comparison import configuration, kernel, trace
from tests.doubles.suspects import MS, change, facts, kernel_delta, moved
from traces.account.pieces import CAUSES
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.sections.addresses import HostCall
from traces.sections.work import HostCopies, Work

NAMED = {
    **{name: f"compute.{name}" for name in compute_classes()},
    **{name: f"exposed_comm.{name}" for name in COMM_KINDS},
    **{name: f"launch_starved.{name}" for name in CAUSES},
    **{name: f"launch_latency.{name}" for name in ("arrival", "kernel_gap")},
    **{name: f"exposed_copy.{name}" for name in ("memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memset")},
}


def row(text: str) -> ComparedRow:
    """`gemm 40` did not move, `gemm 40>50` did by duration, `gemm 40>50 count 100>130` by count, `none`: by
    what nobody knows; `tp 20>25 -16/16/5 12>4`: by so many ms of count, duration and overlap.
    """
    name, times, by, *counts = [*text.split(), "duration"][: max(3, len(text.split()))]
    base, new = (int(one) for one in (times.split(">") * 2)[:2])
    numbers = [float(one) for one in counts[0].split(">")] if counts else []
    one = moved(NAMED.get(name, name), base, new, by if by.isalpha() and by != "none" else "", *numbers)
    if "/" not in by:
        return one
    count_ns, duration_ns, overlap_ns = (int(ms) * MS for ms in by.split("/"))
    return replace(one, count_ns=count_ns, duration_ns=duration_ns, overlap_ns=overlap_ns)


def value(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return tuple(found) if isinstance(found, list) else found


def setting(text: str) -> tuple[str, Any]:
    name, _, one = text.partition("=")
    return name, value(one)


def told(text: str) -> ComparedChange:
    """`fp8 null>hybrid`: a change, by the log of versions and by the trace of what is detected."""
    what, _, sides = text.partition(" ")
    trace_, log = what.startswith(("detected.", "gpu")), what.startswith("version.")
    base, new = sides.split(">") if log else map(value, sides.split(">"))
    return change(what, base, new, "trace" if trace_ else "log" if log else "configuration")


def kernels(text: str) -> Any:
    """`gemm gone 40>- x3`: kernels of a class in ms, which run so often a step."""
    name, what, times, *often = text.split()
    one = kernel_delta(NAMED[name], what, *(None if ms == "-" else float(ms) for ms in times.split(">")))  # type: ignore[arg-type]
    return replace(one, new_count=float(often[0][1:])) if often else one


def place(text: str) -> Exchanges:
    """`permute: 1 fused 4 > 3 sort 9`: what does the work in one place of both steps, and in how many ms."""
    name, _, sides = text.partition(": ")
    one, other = (Worked(called, NAMED[name], int(count), int(ms) * MS)
        for count, called, ms in map(str.split, sides.split(" > ")))  # fmt: skip
    pair = ((one,), (other,), one.count, other.count, one.work_ns, other.work_ns)
    nothing = ExchangeSum(0, 0, 0, 0)
    return Exchanges(
        (Exchange("exchanged", NAMED[name], None, *pair, other.work_ns - one.work_ns),), nothing, 0, nothing
    )


def bits(text: str) -> dict[str, Any]:
    found = {name: float(part) for name, _, part in (one.partition(":") for one in text.split())}
    return {"detected": {"precision": max(found, key=found.__getitem__), "precision_shares_frac": found}}


def passing(text: str) -> dict[str, Any]:
    ahead, back = map(int, text.split("/"))
    unknown = {"recompute_ns": None, "recompute_modules": None}
    named = kernel("norm_fwd", MS, count=ahead), kernel("norm_bwd", MS, count=back)
    return {"kernels": named, "memory": unknown}


def stretch(text: str) -> dict[str, Any]:
    """Half of 40 ms of compute runs beside communication."""
    beside = {"frac": float(text), "group_count": 4, "beside_count": 50, "beside_ns": 20 * MS}
    return {"sm": {"stretch_frac": float(text), "stretch": beside, "comm_blocks": 20}}


def loads(text: str) -> dict[str, Any]:
    plain = {"waiting_steps": 1, "workers": None, "input_copies": 10, "input_copies_pageable": 10}
    name, one = text.split("=")
    return {"data_loading": plain | {"input_copies_exposed_ns": 0, name: value(one)}}


def pageable(text: str) -> dict[str, Any]:
    """Of ten bytes between host and GPU so many are in pageable memory: seven go there, three come back."""
    to_gpu = HostCopies(1, 7, min(7, int(text)))
    return {"work": Work((), {}, to_gpu, HostCopies(1, 3, int(text) - min(7, int(text))))}


def memory(text: str) -> dict[str, Any]:
    """A field in ms, a count, or what of a module runs again."""
    name, one = text.split("=")
    if name.endswith("_ns") or name == "allocator_calls":
        return {"memory": {"recompute_ns": 0, name: int(one) * (MS if name.endswith("_ns") else 1)}}
    return {"memory": {"recompute_ns": int(one) * MS, "recompute_modules": {name: int(one) * MS}}}


def broadcasts(text: str) -> dict[str, Any]:
    name = "ncclDevKernel_Broadcast_RING_LL"
    return {"kernels": (kernel(name, MS, count=int(text), key="comm.other_comm"),) if int(text) else ()}


def calls(text: str) -> dict[str, Any]:
    """`cudaLaunchKernel 10 120`: so many calls, and how many us they take in all."""
    name, count, took_us = text.split()
    return {"addresses": {"calls": (HostCall(name, int(count), int(took_us) * 1_000, 0, 0),)}}


OF_RANKS: dict[str, Callable[[str], dict[str, Any]]] = {
    "graphs": lambda text: {"detected": {"graph_share_frac": float(text)}},
    "runs": lambda text: {"detected": {"dispatcher": text}},
    "waits": lambda text: {"a2a": {"waiting_like_ns": int(text) * MS}},
    "on": lambda text: {"gpu": text},
    **{
        "bits": bits, "passes": passing, "stretch": stretch, "loads": loads, "mem": memory,
        "broadcasts": broadcasts, "calls": calls, "pageable": pageable,
    },
}  # fmt: skip
WORDS = {
    "MORE": "gemm 10>15 count 100>150; attention 10>15 count 100>150; norm 10>15 count 100>150",
    "HOST": "launch 1>5; gemm 40", "PERMUTE": "permute 4>9 count 20>60",
    "APART": "kernels permute gone 4>-; kernels permute new ->3 x3", "BINDING": "launcher.numa_binding",
    "FUSION": "moe_permute_fusion",
    "FLEX": "moe_token_dispatcher_type=flex moe_flex_dispatcher_backend=deepep",
}  # fmt: skip
OF_RESULTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "given": lambda text: {"given": dict([setting(text)])},
    "set": lambda text: {"configuration": configuration(dict(map(setting, text.split())))},
    "perturbed": lambda text: {"traces": tuple(trace(float(one)) for one in text.split())},
}
"""What a rank, or a result, of either side shows; one text is of both sides, `a > b` of base and new."""


def told_of(text: str) -> Facts:
    """A difference in parts: rows, `+` changes, `kernels`, a `place`, and what both sides show."""
    rows, about = list[ComparedRow](), dict[str, Any]()
    for word, meaning in WORDS.items():
        text = text.replace(word, meaning)
    for part in text.split("; "):
        kind, _, rest = part.partition(" ")
        sides = [(rest.split(" > ") * 2)[place] for place in (0, 1)]
        if kind in OF_RANKS or kind in OF_RESULTS:
            of, end = (OF_RANKS, "") if kind in OF_RANKS else (OF_RESULTS, "_result")
            for side, said in zip(("base", "new"), sides, strict=True):
                about[side + end] = about.get(side + end, {}) | (of[kind](said) if said != "-" else {})
        elif kind in ("+", "kernels"):
            name, made = ("changed", told) if kind == "+" else ("kernels", kernels)
            about[name] = (*about.get(name, ()), made(rest))
        elif kind == "place":
            about["exchanged"] = place(rest)
        else:
            rows.append(row(part))
    aligned = about.pop("exchanged", None)
    found = facts(*rows, **about)
    return replace(found, exchanged=aligned) if aligned else found


def ids(text: str) -> list[str]:
    return [one.id for one in find_suspects(told_of(text))]


def first(text: str) -> Suspect:
    return find_suspects(told_of(text))[0]


def lines(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """An id, the difference, and what is expected of it; a line that is indented goes on with the last."""
    for line in text.strip().replace("\n  ", " ").splitlines():
        id_, _, rest = line.partition(": ")
        said, _, expected = rest.partition(" => ")
        yield id_, said, expected.split(" | ") if expected else []
