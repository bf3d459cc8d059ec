"""What changed between two runs: exact, each thing once, from its source; swapped sides mirror it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.comparison.difference.changed import changed
from heuristics.comparison.difference.subject import Subject
from heuristics.result.compared import ComparedChange
from heuristics.result.result import Result
from tests.doubles.comparison import configuration, kernel, log, rank, result, trace


def between(base: Result, new: Result) -> tuple[ComparedChange, ...]:
    return changed(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def said(one: ComparedChange) -> str:
    base, new = (one.base if one.said_base else "-", one.new if one.said_new else "-")
    return f"{one.what}: {base} > {new}, {one.source}{', withheld' * one.withheld}"


Two = tuple[Result, Result]


def knobs(base: dict[str, Any], new: dict[str, Any], said: str = "file") -> Two:
    return result(configuration=configuration(base)), result(configuration=configuration(new, said=said))


def ranks(base: dict[str, Any], new: dict[str, Any]) -> Two:
    return result(rank(**base)), result(rank(**new))


def detected(base: dict[str, Any], new: dict[str, Any]) -> Two:
    return ranks({"detected": base}, {"detected": new})


def given_(base: dict[str, Any], new: dict[str, Any]) -> Two:
    return result(given=base), result(given=new)


def traces(**fields: Any) -> Two:
    return result(), result(traces=(trace(**fields),))


def versions(nccl: str | None = None, log_te: str | None = None, **fields: Any) -> Result:
    told = {"nccl": nccl, "te": log_te}
    return result(log=log(10, versions={name: one for name, one in told.items() if one}), **fields)


def exchange(kind: str, blocks: int) -> dict[str, Any]:
    name = f"void deep_ep::{kind}::dispatch<8, 768>(int4*)"
    return {"kernels": (kernel(name, 10, key="comm.ep_dispatch", grid=(blocks, 1, 1)),)}


def again(**counts: int | None) -> dict[str, Any]:
    return {"recompute": {name: {"recomputed_count": count} for name, count in counts.items()}}


def formats(precision: str | None = None, **shares: float) -> dict[str, Any]:
    return {"precision": precision, "precision_shares_frac": shares}


HIDDEN = configuration(withheld=frozenset({"attention_backend"}))
FLASH = configuration({"attention_backend": "flash"})
EP, FLEX = "expert_model_parallel_size", "moe_flex_dispatcher_backend"
DIFFERENT: list[tuple[Two, list[str]]] = [
    # a knob with both its values; one that a side does not say is not off there, and null is said
    (knobs({"fp4": "a", "bf16": True}, {"fp4": "b", "bf16": True}), ["fp4: a > b, configuration"]),
    (knobs({"bf16": True}, {"bf16": True, "fp4": True}), ["fp4: - > True, configuration"]),
    (knobs({"fp8": None}, {"fp8": "hybrid"}), ["fp8: None > hybrid, configuration"]),
    (knobs({"fp8": None}, {}), ["fp8: None > -, configuration"]),
    ((result(), knobs({}, {"bf16": True})[1]), ["configuration: - > megatron_lm, configuration"]),
    # a withheld text differs from a word without being shown, and not from another
    ((result(configuration=HIDDEN), result(configuration=HIDDEN)), []),
    ((result(configuration=FLASH), result(configuration=HIDDEN)),
     ["attention_backend: flash > None, configuration, withheld"]),
    ((result(configuration=configuration({"attention_backend": None})), result(configuration=HIDDEN)),
     ["attention_backend: None > None, configuration, withheld"]),
    # what only the trace says of a knob is no configuration, but a knob of a file is held against it
    (knobs({}, {"moe_grouped_gemm": True}, said="trace"), []),
    (knobs({FLEX: "a"}, {FLEX: "a"}, said="trace"), []),
    (knobs({FLEX: "a"}, {FLEX: "b"}, said="trace"), [f"{FLEX}: a > b, configuration"]),
    # versions: of the configuration, then of the log, then as given
    ((versions("2.29", "2.8", configuration=configuration({}, te="2.9")), versions("2.30",
     configuration=configuration({}, te="2.10"))), ["version.nccl: 2.29 > 2.30, log",
     "version.te: 2.9 > 2.10, configuration"]),
    ((versions(log_te="2.9"), result(given={"te_version": "2.10"})), ["version.te: 2.9 > 2.10, given"]),
    (given_({"container": "26.04"}, {"container": "26.06"}), ["version.container: 26.04 > 26.06, given"]),
    ((versions("2.29"), versions()), []),
    # what is given, unless a knob says it too
    ((result(given={"ep": 8}, configuration=configuration({EP: 8})), result(given={"ep": 16},
     configuration=configuration({EP: 16}))), [f"{EP}: 8 > 16, configuration"]),
    (given_({"nvlink_domain": 8, "ep": 8}, {"nvlink_domain": 72}), ["nvlink_domain: 8 > 72, given"]),
    (given_({"of_another_release": 1}, {"of_another_release": 2}), ["of_another_release: 1 > 2, given"]),
    (ranks({"gpu": "NVIDIA H100"}, {"gpu": "NVIDIA H200"}), ["gpu: NVIDIA H100 > NVIDIA H200, trace"]),
    (traces(exporter_version="2025.1", schema="3.17.1", missing_tables=("NVTX_EVENTS",)),
     ["recorder.missing_tables: () > ('NVTX_EVENTS',), trace", "recorder.schema: 3.25.0 > 3.17.1, trace",
     "recorder.version: 2026.2.1.210 > 2025.1, trace"]),
    (traces(exporter_version=None), []),
    (traces(kind="kineto", exporter_version=None, schema="1"), ["recorder: nsys-sqlite > kineto, trace"]),
    # what the traces show, from a hundredth of kernel work and from a call in a step up
    (detected({"dispatcher": "alltoall"}, {"dispatcher": "deepep"}),
     ["detected.dispatcher: alltoall > deepep, trace"]),
    (detected({"ep_overlap": False}, {"ep_overlap": True}), ["detected.ep_overlap: False > True, trace"]),
    (detected({"graph_share_frac": 0.0}, {"graph_share_frac": 0.0101}),
     ["detected.graph_share_frac: 0.0 > 0.0101, trace"]),
    (detected({"graph_share_frac": 0.0}, {"graph_share_frac": 0.01}), []),
    (detected(formats(bf16=0.25), formats(bf16=0.25, mxfp8=0.5)),
     ["detected.precision: bf16 > bf16+mxfp8, trace"]),
    (detected(formats(bf16=0.25), formats("bf16")), []),
    (detected(formats(bf16=0.25), formats(bf16=0.25, mxfp8=0.01)), []),
    (detected(again(norm=0, router=0), again(norm=4, router=0)),
     ["detected.recompute: () > ('norm',), trace"]),
    (detected(again(norm=None), again(norm=4)), []),
    (ranks(exchange("near", 20), exchange("far", 24)), ["comm_blocks.ep_dispatch: 20 > 24, trace",
     "dispatcher.kernels: ('deep_ep::near::dispatch',) > ('deep_ep::far::dispatch',), trace"]),
    (ranks({"kernels": tuple(kernel(f"of {n}", 9, key="comm.cp", grid=(n, 1, 1)) for n in (9, 4))},
           {"kernels": (kernel("of 8", 9, key="comm.cp", grid=(8, 1, 1)),)}),
     ["comm_blocks.cp: 9 > 8, trace"]),
    (ranks({"memory": {"allocator_calls": 0}}, {"memory": {"allocator_calls": 3}}),
     ["memory.allocator_calls_per_step: 0.0 > 1.5, trace"]),
    (ranks({"memory": {"allocator_calls": 0}}, {"memory": {"allocator_calls": 2}}), []),
    (ranks({}, {"source": "period", "dropped": ("partial",)}), ["steps.dropped: () > ('partial',), trace",
     "steps.source: nvtx > period, trace"]),
]  # fmt: skip


@pytest.mark.parametrize(("sides", "expected"), DIFFERENT)
def test_what_differs_is_listed_once_from_its_source(sides: Two, expected: list[str]) -> None:
    base, new = sides
    found = between(base, new)
    assert [*map(said, found)] == expected
    turned = [
        replace(one, base=one.new, new=one.base, said_base=one.said_new, said_new=one.said_base)
        for one in found
    ]
    assert [*between(new, base)] == turned
    assert between(base, base) == between(new, new) == ()
