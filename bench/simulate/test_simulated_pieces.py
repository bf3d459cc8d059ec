"""What runs have beside drawn ones: pieces of fused kernels, casts, buckets, buffers, batches, containers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from bench.simulate.containers import named_in
from bench.simulate.host_program import Engine
from bench.simulate.kernels import kernels_of
from bench.simulate.knobs import Knobs
from bench.simulate.pieces import ADAM, SMALL, pieces_of
from bench.simulate.recorded import View, record
from bench.simulate.run import Run, run
from traces.names.kernels import classify_kernel

PLAIN = Knobs(step_count=2, layer_count=4, microbatch_count=1, data_stall_ms=0.0)
DENSE = replace(PLAIN, dispatcher="none")


def counted(done: Run) -> Counter[str]:
    """Kernels of the second step."""
    return Counter(one.work.kernel for one in done.own if one.work.place.step == 1)


def time_ns(done: Run, kernel: str) -> int:
    """What moving the data of the second step takes these kernels."""
    works = (one.work for one in done.own if one.work.place.step == 1 and one.work.kernel == kernel)
    return sum(work.alone_ns for work in works)


def test_a_module_that_is_not_fused_runs_its_pieces_and_no_kernel_of_its_own_but_the_heads_norm() -> None:
    fused, apart = (counted(run(replace(DENSE, unfused=unfused))) for unfused in (False, True))
    assert fused["norm_fwd"] == 9  # two of each layer, and the head's
    assert apart["norm_fwd"] == 1
    assert apart["pow"] == 8
    assert apart["rsqrt"] == 8
    assert not fused["pow"]
    assert apart["gemm_fwd"] == fused["gemm_fwd"]


def test_pieces_take_longer_than_what_fuses_them() -> None:
    assert all(sum(share for _, share in pieces) >= 1.4 for pieces in SMALL.values())
    assert sum(share for _, share in ADAM["foreach"]) > 2
    assert pieces_of("add", unfused=True) == (("add", 1.0),)


@pytest.mark.parametrize(("adam", "kernels"), [("fused", 1), ("foreach", 7)])
def test_adam_runs_in_as_many_chunks_as_are_asked_for(adam: str, kernels: int) -> None:
    found = counted(run(replace(DENSE, adam=adam, adam_launches=12)))
    names = {name for name, _ in ADAM[adam]}
    assert sum(found[name] for name in names) == 12 * kernels


def test_a_cast_runs_beside_every_matrix_product_of_a_layer() -> None:
    found = counted(run(replace(DENSE, autocast=True)))
    products = found["gemm_fwd"] + found["gemm_dgrad"] - 2  # the head's have none
    assert found["cast"] == products
    assert found["cast_back"] == found["gemm_wgrad"] - 1


@pytest.mark.parametrize("gradients", ["sharded", "all_reduce"])
def test_larger_buckets_are_fewer_collectives_of_as_much_data(gradients: str) -> None:
    kernel = "nccl_reduce_scatter" if gradients == "sharded" else "nccl_all_reduce"
    of_norm = 0 if gradients == "sharded" else 1
    one, four = (run(replace(DENSE, gradients=gradients, bucket_layers=layers)) for layers in (1, 4))
    assert (counted(one)[kernel], counted(four)[kernel]) == (4 + of_norm, 1 + of_norm)
    assert time_ns(four, kernel) == pytest.approx(time_ns(one, kernel), rel=0.1)
    assert counted(one)["nccl_all_gather"] == (4 if gradients == "sharded" else 0)


@pytest.mark.parametrize("overlap", [True, False])
def test_buckets_that_do_not_divide_the_layers_miss_none(overlap: bool) -> None:
    one, three = (run(replace(DENSE, bucket_layers=layers, gradient_overlap=overlap)) for layers in (1, 3))
    for kernel in ("nccl_reduce_scatter", "nccl_all_gather"):
        assert counted(three)[kernel] == 2
        assert time_ns(three, kernel) == pytest.approx(time_ns(one, kernel), rel=0.1)


def test_buffers_come_by_one_broadcast_and_are_copied_each_to_its_place() -> None:
    done = run(replace(DENSE, buffer_count=30))
    assert counted(done)["nccl_broadcast"] == 1
    copies = [one for one in done.own if one.work.engine is Engine.COPY_ON_DEVICE]
    assert len(copies) == 60


def test_batches_are_late_by_chance_in_about_the_share_that_is_asked_for() -> None:
    knobs = replace(
        DENSE, layer_count=1, step_count=60, data_stall_ms=50, late_batch_frac=0.25, end_of_step="read_back"
    )
    late = [ns for ns in run(knobs).step_ns if ns > 30e6]
    assert 6 <= len(late) <= 24


def test_the_first_batch_comes_before_the_first_step_and_in_none() -> None:
    plain, late = (run(replace(DENSE, initial_kernel_count=4, first_batch_ms=ms)) for ms in (0.0, 500.0))
    assert sum(late.step_ns[1:]) == sum(plain.step_ns[1:])
    assert late.executed.end_ns - plain.executed.end_ns > 300e6


@pytest.mark.parametrize("container", ["libraries", "all"])
def test_another_container_names_kernels_otherwise_and_of_the_same_class(container: str) -> None:
    here = kernels_of("H100", False, True)
    there = named_in(container, here)
    renamed = [part for part in here if here[part].name != there[part].name]
    assert len(renamed) >= {"libraries": 9, "all": 35}[container]
    for part in renamed:
        one, other = (classify_kernel(kernels[part].name) for kernels in (here, there))
        assert (one.class_, one.subclass, one.phase) == (other.class_, other.subclass, other.phase), part


def test_a_container_changes_names_alone() -> None:
    here, there = (run(replace(PLAIN, container=container)) for container in ("this", "all"))
    assert here.step_ns == there.step_ns
    kernels = [record(done, View()).rows["CUPTI_ACTIVITY_KIND_KERNEL"] for done in (here, there)]
    assert [row["start"] for row in kernels[0]] == [row["start"] for row in kernels[1]]
    assert {row["demangledName"] for row in kernels[0]} != {row["demangledName"] for row in kernels[1]}
