"""What is concluded from each real recording, and why that is right.

`tests/by_definition/real_recordings.py` reads the recordings a second time, by SQL or JSON and numpy, and
each test argues for itself. Of every recording it gives the budget to the nanosecond, and how long no compute
ran although the next one's launch had not yet returned: that much must be `launch_starved`, or `blocking`
where the host itself waited for the GPU. Of every wall it gives what taking it away saves at least and at
most; in all but one case, which says so, these bounds alone settle whether it is a finding or clear.

What is told of a file alone was read off it once, by SQL or JSON. How full the memory was is in none of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from tests.by_definition.real_recordings import (
    COMM,
    COMPUTE,
    LARGEST,
    NEVER,
    Document,
    agrees,
    events_of,
    filling_of_events,
    filling_of_export,
    host_bounds_ns,
    largest_reason,
    most_frac,
    not_launched_ns,
    one_window,
    outcomes,
    saved_ns,
    settled,
    share,
    sql,
    stepped,
    union_ns,
    verdict,
    work_of_events,
    work_of_export,
)

KERNEL_NAMES = "CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName"
LAUNCHES = (
    "CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
    "ON r.correlationId = k.correlationId AND (r.globalTid >> 24) = (k.globalPid >> 24)"
)


def concluded(path: Path, said: tuple[str | None, ...], each: str) -> Document:
    """The document, whose verdict and outcomes (c: clear, f: finding, u: unmeasurable) are these."""
    document = diagnoser.analyze(path).to_dict()
    assert verdict(document) == said
    assert "".join(one[0] for one in outcomes(document)) == each
    return document


def test_two_h100_that_exchange_heads_are_compute_bound_by_attention(recordings: Path) -> None:
    """nsysai_mfu_2gpu_before: two ranks of a forward pass with Ulysses, bound by compute (85 %).

    NCCL's ranges hold 66 groups, 32 and 34 by rank, each of exactly 2 sends and 2 receives: an all-to-all of
    two ranks, not a pipeline, which sends one way. Its enclosing ranges are called AllToAll4D and no router,
    permute or grouped GEMM runs anywhere, so what is exchanged are heads: kind `cp`, never `ep_*` nor
    `pp_p2p`. Exchanges and compute share one stream, so all 33 kernels a rank are exposed, to the nanosecond.
    There is flash forward and no backward or optimizer kernel: it is no training step. Beside the exchange,
    which blocks whole, what keeps compute away longest is Python.

    No wall. On one stream a host that takes no time saves at most what is idle, 57.4 of 598.5 ms; without
    the exchange at most its own 25.4 ms are saved, and at least what a host as late as it was leaves of them.
    But one GPU, busy for 91 %, would win only a third if all its work halved: the host is nearly the limit
    too. The exchange is exposed for 4.2 %, and at most 8.2 % are the host's by the replay, so both are clear.
    The number of SMs is not recorded, but even of the largest GPU the small grids leave less than a tenth.
    """
    path = recordings / "nsysai_mfu_2gpu_before.sqlite"
    document = concluded(path, (None, None, "compute", None), "cccc")
    filling_ns = sum(
        filling_of_export(path, work_of_export(path, rank["process"]).whole, LARGEST) // 2
        for rank in document["ranks"]
    )  # the kernels of both GPUs lie in the window of each
    assert filling_ns < 0.1 * sum(rank["budget_ns"]["window"] for rank in document["ranks"])
    assert [round(rank["replay"]["elastic_frac"], 2) for rank in document["ranks"]] == [0.32, 0.32]
    exposed_ns, host_ns, saved = {}, [], 0
    for rank in document["ranks"]:
        work = work_of_export(path, rank["process"])
        agrees(rank, work, work.whole)
        exposed = exposed_ns[rank["process"]] = int((work.end - work.start)[work.what == COMM].sum())
        told = {kind: ns for kind, ns in rank["exposed_comm_by_kind_ns"].items() if ns}
        assert told == {"cp": exposed} == {"cp": rank["absent_ns"]["blocking"]["cp"]}
        assert (rank["hidden_comm_ns"], rank["steps"]["source"]) == (0, "none")
        assert (rank["detected"]["training_step"], rank["detected"]["dispatcher"]) == (False, "none")
        starved = rank["absent_ns"]["launch_starved"]
        assert max(starved, key=lambda cause: starved[cause]) == "python"
        host_ns.append(host_bounds_ns(rank, work))
        saved += saved_ns(work, work.what == COMM)
    assert exposed_ns == {144: 17_172_652, 145: 8_229_100}
    settled(document, "communication", saved, sum(exposed_ns.values()))
    settled(document, "host_overhead", sum(least for least, _ in host_ns), sum(most for _, most in host_ns))
    most = most_frac(document)
    assert (most["communication"], most["host_overhead"]) == (0.041, 0.082)


def test_two_h100_that_load_weights_wait_for_copies_from_the_host(recordings: Path) -> None:
    """nsysai_h100_2gpu_1s: 97 % exposed copies: the wall and the bound are memory, kind `host_resident`.

    In the second recorded each GPU receives 225 copies from the host, up to 4.2 GB each, and little else
    runs: layers are brought in, used and dropped. No communication kernel is in the file. Copies and compute
    share one stream, so stream order alone makes compute wait: blocking by `memcpy_h2d` is the largest
    reason. Nothing in it tells whether it is training. A host that takes no time saves at most what is
    idle, 0.7 %. The copies come and never go back, so they are no offload; they are no input batches, for
    three sizes (192, 64 and 160 MiB) recur 28, 28 and 82 times, each before a GEMM, and no model is loaded
    between its own GEMMs. So weights live in host memory: the 139 copies of a MiB or more bring 25.5 GB at
    27.7 GB/s and fill 95 % of the window, all of it exposed, and without them no more than that is saved. The
    host is no limit behind them: it is 400 ms ahead, its launches wait for room in a full queue, and the 905
    kernels whose launch lies before the recording are what fills it. So nearly all of the copies' time is
    saved. The number of SMs is not recorded, but compute takes 2 % of the time, whatever it is: it is not
    what bounds the run. No step is found: confidence is no more than medium.
    """
    path = recordings / "nsysai_h100_2gpu_1s.sqlite"
    document = concluded(path, ("memory", "host_resident", "memory", "medium"), "fccc")
    assert document["verdict"]["largest_bucket"] == "exposed_copy"
    shares = [rank["budget_frac"]["compute"] for rank in document["ranks"]]
    assert document["walls"][3]["at_most_frac"] < sum(shares)
    assert document["fixes"][0]["id"] == "MEM-14"
    host_ns, copied_ns = [], 0
    sums = (
        "SELECT count(*), sum(bytes), sum(end - start) FROM CUPTI_ACTIVITY_KIND_MEMCPY "
        "WHERE copyKind = 1 AND bytes >= 1048576 AND globalPid >> 24 & 16777215 = ?"
    )
    for rank in document["ranks"]:
        work = work_of_export(path, rank["process"])
        agrees(rank, work, work.whole)
        told = tuple(rank["memory"][f"host_resident_{key}"] for key in ("copies", "bytes", "union_ns"))
        assert told == sql(path, sums, rank["process"])[0]  # one stream: none runs beside another
        assert rank["memory"]["host_resident_exposed_ns"] == told[2]
        copied_ns += told[2]
        assert rank["kernels_without_launch"] == ((work.call == NEVER) & (work.what == COMPUTE)).sum() == 905
        assert share(rank, "exposed_copy") == 0.97
        assert rank["absent_ns"]["blocking"]["memcpy_h2d"] > 0.94 * rank["budget_ns"]["window"]
        assert largest_reason(rank) == "blocking.memcpy_h2d"
        assert rank["detected"]["training_step"] is None
        host_ns.append(host_bounds_ns(rank, work))
    assert 0.95 * copied_ns < document["walls"][0]["cost_ns"] <= copied_ns
    settled(document, "communication", 0, 0)
    settled(document, "host_overhead", sum(least for least, _ in host_ns), sum(most for _, most in host_ns))


def test_one_a100_repeats_a_forward_pass_of_32_layers(recordings: Path) -> None:
    """a100_llm_2_7B: compute-bound, three passes by their period of 1832 kernels and warm-up, not training.

    The user's ranges say so themselves: `warmup`, then `benchmark_loop`, in which 3 x 1832 kernels are
    launched; 128 attention ranges are 4 passes of 32 layers. One thread launches everything and no kernel is
    of a backward or an optimizer. The first pass is the user's warm-up: 1434 ms beside 843, 841 and 841,
    which do not share it, so it is left out. Nothing shows that a pass is a step (no input copy, no
    optimizer, no range), so they are blocks, and the confidence is no more than medium. In `benchmark_loop`
    6 ms are idle of 2524, most of it the microsecond or so between two of the 5,496 kernels.

    The wall is compute, kind `no_tensor_cores`: each of the 1,156 GEMMs, 289 a pass, is an `ampere_sgemm`,
    FP32 without tensor cores, on a GPU that multiplies TF32 eight times as fast (19.5 to 156 TFLOP/s). One
    thread feeds one stream, so what takes an eighth of its time saves at most seven eighths of their time,
    and at least that less all idle time. Filled grids would save under 0.1 %. No allocator call is made in
    the loop, and nothing is exchanged.
    """
    path = recordings / "a100_llm_2_7B_nvtx.sqlite"
    document = concluded(path, ("compute", "no_tensor_cores", "compute", "medium"), "cccf")
    (rank,) = document["ranks"]
    work = work_of_export(path, rank["process"])
    assert [fix["id"] for fix in document["fixes"]][:1] == ["CMP-9"]
    used = rank["steps"]["used"]
    assert (rank["steps"]["source"], rank["steps"]["unit"], len(used)) == ("period", "block", 3)
    gemms = (
        f"SELECT count(*), sum(k.end - k.start) FROM {KERNEL_NAMES} WHERE s.value LIKE 'ampere_sgemm%' "
        f"AND k.start >= {used[0]['start_ns']}"
    )
    (count, gemm_ns), idle_ns = sql(path, gemms)[0], rank["budget_ns"]["idle"]
    assert count == rank["tensor_cores"]["simt_count"] == 3 * 289
    assert gemm_ns == rank["tensor_cores"]["simt_ns"]
    begin, end = sql(path, "SELECT start, end FROM NVTX_EVENTS WHERE text = 'benchmark_loop'")[0]
    assert used[0]["start_ns"] == int(work.end[work.call < begin].max())  # its preparation is the next's own
    assert used[2]["end_ns"] == int(work.end[work.what == COMPUTE].max()) <= end
    agrees(rank, work, [(used[0]["start_ns"], used[2]["end_ns"])])
    assert share(rank, "compute") > 0.995
    assert largest_reason(rank) == "launch_latency.kernel_gap"
    assert (rank["detected"]["training_step"], rank["memory"]["allocator_calls"]) == (False, 0)
    passes = [(step["start_ns"], step["end_ns"]) for step in used]
    least_ns, most_ns = host_bounds_ns(rank, work)
    assert least_ns <= document["walls"][2]["cost_ns"] <= most_ns
    settled(document, "communication", 0, 0)
    filling_ns, without_ns = filling_of_export(path, passes), gemm_ns * 7 // 8
    assert filling_ns < 0.001 * rank["budget_ns"]["window"]
    settled(document, "compute", without_ns - idle_ns, without_ns + filling_ns)


def test_one_h100_that_the_profiler_held_back_multiplies_without_tensor_cores(recordings: Path) -> None:
    """h100_llm_1rank: a third of the window is start-up; of the rest, FP32 GEMMs come before the host.

    The profiler begins within the window. On the two threads that launch its own rows cover 302 ms, of which
    275 lie where no kernel had been launched (31.5 % of 873 ms); loading modules and initialising libraries
    takes 12 more. First launches of 29 kernels, each over 1 ms and ten times the next of its kernel, add the
    19.4 ms that lie outside the profiler's rows, and the first cudaFree 1.6 (the next takes 2 us). Six pauses
    between calls, of 9 to 38 ms, come before half of the launches and none a tenth as long after: 79.7 ms
    of them the profiler does not cover. Before the first of 26 sorts lie 28 ms more, before the first of 130
    equal kernels 7, and before none of the later ones a tenth of that. Until the last of these first uses
    short pauses and calls take 21 ms besides. That is a fault of the recording, said first, and the walls are
    judged on the rest.

    The 1,443 GEMMs are all FP32 without tensor cores, `ffma` and `simt_sgemm`: 272.8 ms. At the TF32 peak of
    an H100 they would take 67 / 494.5 of it, so 235.9 ms less at most, 42 % of those 563; one thread feeds
    one stream, and where it is late the saving is less: at least what all idle time leaves. That bound does
    not settle the wall (nothing is left of it), the replay does: 196.8 ms. A host without time of its own
    saves at most what is idle less start-up, 168.6 ms. Nothing is exchanged.
    """
    path = recordings / "added" / "h100_llm_1rank.sqlite"
    document = concluded(path, ("compute", "no_tensor_cores", "compute", "low"), "cccf")
    rank, work = one_window(path, document)
    assert document["fixes"][0]["id"] == "CMP-9"
    assert document["warnings"][0].startswith("not a steady-state recording: the profiler and start-up")
    begin, end = work.whole[0]
    threads = f"(SELECT r.globalTid FROM {LAUNCHES})"
    rows = f"SELECT sum(min(end, ?) - max(start, ?)) FROM PROFILER_OVERHEAD WHERE globalTid IN {threads}"
    overhead_ns = sql(path, f"{rows} AND end > ? AND start < ?", end, begin, begin, end)[0][0]
    starved = rank["absent_ns"]["launch_starved"]
    assert 0.9 * overhead_ns < starved["profiler"] <= overhead_ns
    startup_ns = document["verdict"]["startup_ns"]
    assert startup_ns == starved["profiler"] + starved["lazy_init"]
    calls_ms = starved["lazy_init"] / 1_000_000 - 79.7 - 33.5
    assert 12.4 + 19.3 + 1.5 + 20 < calls_ms < 12.4 + 19.4 + 1.6 + 1.4 + 22
    simt = "(s.value LIKE '%ffma%' OR s.value LIKE '%simt_sgemm%')"
    count, gemm_ns = sql(path, f"SELECT count(*), sum(k.end - k.start) FROM {KERNEL_NAMES} WHERE {simt}")[0]
    assert (count, gemm_ns) == (rank["tensor_cores"]["simt_count"], rank["tensor_cores"]["simt_ns"])
    host, compute = document["walls"][2:]
    filling_ns = filling_of_export(path, work.whole)
    assert 0 < compute["cost_ns"] <= gemm_ns * (1 - 67 / 494.5) + filling_ns
    assert host["cost_ns"] <= rank["budget_ns"]["idle"] - startup_ns
    assert compute["cost_frac"] == compute["cost_ns"] / (end - begin - startup_ns)
    settled(document, "communication", 0, 0)


def test_the_fuser_recording_is_a_host_that_builds_kernels(recordings: Path) -> None:
    """fuser_h200_2025: 99 % idle over 3.2 s; 18 kernels in all, and the host makes them ready.

    A program that generates code launches a kernel now and then. One thread launches them and no CUDA call
    runs on it for 3.1 s. Four pauses between calls last 0.3 to 1.6 s and make 3.06 s together. Ranges of the
    launching thread that say `compile` name 0.83 s, nearly all of it in two of these pauses. After each pause
    come kernels that were never launched before, and no pause as long comes before one that was: all of it is
    start-up, said first, and what is left holds no wall. No backward runs, so nothing is computed twice.
    """
    path = recordings / "fuser_h200_2025.sqlite"
    document = concluded(path, (None, None, None, None), "cccc")
    rank, work = one_window(path, document)
    settled(document, "communication", 0, 0)
    settled(document, "compute", 0, filling_of_export(path, work.whole))
    begin, end = work.whole[0]
    mine = f"(SELECT r.globalTid FROM {LAUNCHES})"
    pauses = (
        "SELECT ns FROM (SELECT r.start - lag(r.end) OVER (ORDER BY r.start) AS ns "
        f"FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.globalTid = {mine} AND r.start > ? AND r.start < ?) "
        "ORDER BY ns DESC LIMIT 4"
    )
    four_ns = sum(ns for (ns,) in sql(path, pauses, begin, end))
    startup_ns = document["verdict"]["startup_ns"]
    assert four_ns <= startup_ns <= rank["budget_ns"]["idle"]
    assert document["warnings"][0].startswith("not a steady-state recording")
    assert largest_reason(rank) == "launch_starved.lazy_init"
    assert share(rank, "idle") == 0.99


def test_saxpy_waits_for_its_host_and_for_its_copies(recordings: Path) -> None:
    """pipit_saxpy_mpi: 66 % idle, 26 % copies, five kernels of 8 %: too few to judge a run by, yet accounted.

    Every copy is a blocking one, so while the host is inside it compute waits for the copy; between them the
    host prepares data without a call, `python` by the name of the cause (the program is C). The time before
    launches, by hand, is exactly the one and the other: what is starved, and the copies called from there.
    """
    path = recordings / "pipit_saxpy_mpi.sqlite"
    document = concluded(path, (None, None, None, None), "uuuu")
    rank, work = one_window(path, document)
    blocking = rank["absent_ns"]["blocking"]
    assert set(blocking) == {"memcpy_h2d", "memcpy_d2h"}
    starved = sum(rank["absent_ns"]["launch_starved"].values())
    assert starved + sum(blocking.values()) == not_launched_ns(work, work.whole)
    assert [kernel["name"].split("(")[0] for kernel in rank["unknown_kernels"]] == ["saxpy"]
    assert largest_reason(rank) == "launch_starved.python"


REPORTS = {"jax_3090_2022.nsys-rep": (("futex",), 0.82), "rtx6000_2021.qdrep": (("getc", "read"), 0.90)}


@pytest.mark.parametrize("name", REPORTS)
def test_reports_of_programs_that_wait_for_the_system(
    recordings: Path, real_nsys: str, tmp_path: Path, name: str
) -> None:
    """jax_3090_2022 and rtx6000_2021: idle, with the launching thread inside calls of the operating system.

    jax compiles on other threads while its launching thread waits in futex, 0.79 of 0.95 s; the database on
    the RTX 6000 waits for a person's key in getc for 4.7 s and reads files for 1.2. Neither has steps or
    communication. For over nine tenths nothing runs and nothing is being launched. No pause as long comes
    before a kernel that was launched before, so the calls are single pauses. Of so few kernels no wall is
    judged.
    """
    waits, least = REPORTS[name]
    document = diagnoser.analyze(recordings / name, nsys=real_nsys, cache_dir=tmp_path).to_dict()
    (path,) = tmp_path.glob("*.sqlite")
    rank, work = one_window(path, document)
    assert verdict(document) == (None, None, None, None)
    assert set(outcomes(document)) == {"unmeasurable"}
    assert largest_reason(rank) == "launch_starved.lazy_init"
    begin, end = work.whole[0]
    query = (
        "SELECT sum(min(o.end, ?) - max(o.start, ?)) FROM OSRT_API o JOIN StringIds s ON s.id = o.nameId "
        f"WHERE s.value IN ({', '.join('?' * len(waits))}) AND o.end > ? AND o.start < ? AND o.globalTid IN "
        f"(SELECT r.globalTid FROM {LAUNCHES})"
    )
    waited_ns = sql(path, query, end, begin, *waits, begin, end)[0][0]
    assert waited_ns >= least * (end - begin)
    starved = rank["absent_ns"]["launch_starved"]
    assert 0.98 * waited_ns <= starved["os_wait"] + starved["lazy_init"] <= rank["budget_ns"]["idle"]


MOE = {
    "tl_moe_01_many_experts_few_tokens.json.gz": ("host_overhead", "python", "host_overhead", 0.150),
    "tl_moe_03_top1_sparse.json.gz": ("host_overhead", "python", "compute", 0.711),
    "tl_moe_04_top2_dense.json.gz": ("host_overhead", "python", "compute", 0.769),
    "tl_moe_05_large_capacity.json.gz": (None, None, "compute", 0.972),
}


@pytest.mark.parametrize("name", MOE)
def test_one_layer_of_experts_is_starved_when_small_and_compute_bound_when_large(
    recordings: Path, name: str
) -> None:
    """tl_moe_01, 03, 04, 05: one MoE layer three times on a B300, from 16 tokens to large ones.

    All launch nearly the same 30 to 42 kernels, so the host needs about as long; with few tokens the kernels
    take 0.23 ms of 1.5 and the GPU is idle for 85 %, all of it before launches but for latencies. With large
    capacity the same host hides under 10 ms of kernels: compute-bound, 2.8 % idle. No call waits for the GPU,
    so the time before launches by hand is `launch_starved` to the nanosecond. A single layer without ranges
    of steps has none, and exchanges nothing; whether it trains nothing tells, and none is said.

    In the first three the host is a wall, for at least 72, 17 and 13 % nothing runs and nothing is being
    launched, also where most of the time is compute; in the fourth at most 2.8 % is idle. Without steps the
    confidence is never high. Few tokens make small grids, but filled ones would save at most 6.5 %.
    """
    wall, kind, bound, compute = MOE[name]
    document = diagnoser.analyze(recordings / name).to_dict()
    rank, work = one_window(recordings / name, document)
    assert verdict(document)[:3] == (wall, kind, bound)
    assert document["verdict"]["confidence"] != "high"
    assert outcomes(document) == ["clear", "clear", "finding" if wall else "clear", "clear"]
    settled(document, "host_overhead", *host_bounds_ns(rank, work))
    settled(document, "communication", 0, 0)
    settled(document, "compute", 0, filling_of_events(events_of(recordings / name), work.whole, 148))
    assert share(rank, "compute") == compute
    assert sum(rank["absent_ns"]["launch_starved"].values()) == not_launched_ns(work, work.whole)
    assert (rank["absent_ns"]["blocking"], rank["budget_ns"]["exposed_comm"]) == ({}, 0)
    assert largest_reason(rank) == "launch_starved.python"
    assert rank["detected"]["training_step"] is None


def test_a_compiled_model_on_two_v100_waits_for_python(recordings: Path) -> None:
    """hta_df_index_resolver: five profiler steps of 0.34 s; 42 % idle: the wall and the bound are the host.

    2020 all-reduces, one per parameter, with no compute beside them: all exposed, their sum is the bucket.
    Most of the time without compute the next launch had not returned: 0.99 of 1.11 s.

    The all-reduces are 21 % of the time and yet no wall. One call of the host lasts 1.5 ms, no other 0.1, so
    without them work is launched at most 1.5 ms sooner, and the last step ends no sooner than its last work
    is launched, 0.1 ms before its end. Grids that fill the V100 would save 2.1 % at most; its GEMMs
    in FP32 could be a wall, were the host faster, so compute is not judged.
    """
    path = recordings / "hta_df_index_resolver_df_index_resolver.json.gz"
    document = concluded(path, ("host_overhead", "python", "host_overhead", "medium"), "ccfu")
    rank, events = stepped(path, document)
    work = work_of_events(events)
    settled(document, "host_overhead", *host_bounds_ns(rank, work))
    assert rank["tensor_cores"]["wide_ns"] > 0.1 * rank["budget_ns"]["window"]
    assert len(rank["steps"]["used"]) == 5
    nccl = [event for event in events if event["cat"] == "kernel" and "nccl" in event["name"]]
    total = sum(event["end"] - event["start"] for event in nccl)
    assert (rank["exposed_comm_by_kind_ns"], rank["hidden_comm_ns"]) == ({"all_reduce": total}, 0)
    settled(document, "communication", 0, 126_000 + 1_514_000)
    assert largest_reason(rank) == "launch_starved.python"


def test_a_small_convolutional_network_waits_for_python(recordings: Path) -> None:
    """hta_nccl_parser: three profiler steps of 0.22 s; 76 % idle: the wall and the bound are the host.

    900 kernels a step keep an A100 busy for a fifth of it. The gradients' all-reduces are 15, their names say
    so; the 6 broadcasts of buffers are `other_comm`, as a name tells no purpose. Nine tenths of the time
    without compute lie before launches.

    For at least 71 % nothing runs and nothing is being launched. Communication runs for 7.1 % in all, hidden
    or not, so without it not even a tenth is saved; filled grids would save under 1 %.
    """
    path = recordings / "hta_nccl_parser_config_nccl_data.json.gz"
    document = concluded(path, ("host_overhead", "python", "host_overhead", "high"), "ccfc")
    rank, events = stepped(path, document)
    work = work_of_events(events)
    settled(document, "host_overhead", *host_bounds_ns(rank, work))
    settled(document, "communication", 0, int((work.end - work.start)[work.what == COMM].sum()))
    settled(document, "compute", 0, filling_of_events(events, rank["windows_ns"], 108))
    assert len(rank["steps"]["used"]) == 3
    assert set(rank["exposed_comm_by_kind_ns"]) == {"all_reduce", "other_comm"}
    starved = sum(rank["absent_ns"]["launch_starved"].values())
    assert starved > 0.9 * (rank["budget_ns"]["window"] - rank["budget_ns"]["compute"])
    assert largest_reason(rank) == "launch_starved.python"


def test_a_recommender_is_compute_bound_and_its_exchange_is_no_expert_traffic(recordings: Path) -> None:
    """hta_trace_diff: six profiler steps of 0.12 s, bound by compute (74 %), of embeddings and GEMMs.

    It trains: embedding backward and Adam kernels run. Its 43 SendRecv are launched in `nccl:all_to_all`,
    beside embeddings and no router or permute, so the exchange stays unresolved and never becomes `ep_*`.
    Chains of copies on the compute stream end where compute begins, so `blocking.memcpy_d2d` is the largest
    reason, and no more of it than such copies ran without compute. The profiler recorded no events, so what
    waited for the exchange's own stream is told by nothing, and said to be: `dependency_stalled`.

    No replay can be trusted, for want of what GPU work waits for: a third of the window are waits that no
    edge explains, and both proofs of the replay fail (off by 4 %, and 37 % where 40 should be saved). The
    partition alone says that the host costs at most 5.5 %: clear. Its GEMMs are FP32 (`sgemm`), 27 % of the
    window, on a V100, which multiplies FP16 eight times as fast (15.7 to 125 TFLOP/s): at most 24 % would be
    saved, and small grids 3.5 %; what a replay in doubt gives is never more. So compute is the wall, with low
    confidence. By hand, the exchange is exposed for 9.8 % and hides under compute for 24 % more, which it
    slows down: at most 28 %, enough for a wall, and not proven to be one.
    """
    path = recordings / "hta_trace_diff_test_test.json.gz"
    document = concluded(path, ("compute", "low_precision_unused", "compute", "low"), "cucf")
    rank, events = stepped(path, document)
    most, window_ns = most_frac(document), rank["budget_ns"]["window"]
    assert (most["communication"], most["host_overhead"]) == (0.278, 0.055)
    in_window = sum(
        event["end"] - event["start"]
        for event in events
        if event["cat"] == "kernel"
        and "sgemm" in event["name"]
        and any(first <= event["start"] < last for first, last in rank["windows_ns"])
    )
    assert in_window == pytest.approx(rank["tensor_cores"]["wide_ns"], rel=0.01)
    assert document["walls"][3]["cost_ns"] <= in_window * 7 // 8 + 0.035 * window_ns
    late = rank["absent_ns"]
    host_ns = sum((*late["launch_starved"].values(), *late["launch_latency"].values()))
    assert 0.05 < (host_ns + late["blocking"].get("memcpy_d2h", 0)) / window_ns <= 0.055
    assert 0.02 < rank["replay"]["residual_free_error_frac"] < 0.05
    assert 0.35 < rank["replay"]["elastic_frac"] < 0.4
    assert rank["replay"]["unexplained_frac"] > 0.3
    assert (share(rank, "exposed_comm"), share(rank, "compute")) == (0.098, 0.736)
    assert rank["hidden_comm_ns"] > 0.2 * window_ns
    assert len(rank["steps"]["used"]) == 6
    assert rank["detected"]["training_step"] is True
    assert set(rank["exposed_comm_by_kind_ns"]) == {"sendrecv_unresolved", "all_reduce"}
    copies = [event for event in events if event["name"].startswith("Memcpy DtoD")]
    compute = [event for event in events if event["cat"] == "kernel" and "nccl" not in event["name"]]
    alone_ns = union_ns([*copies, *compute]) - union_ns(compute)
    assert 0.9 * alone_ns < late["blocking"]["memcpy_d2d"] <= alone_ns
    assert rank["absent_decided_by_frac"]["none"] > 0.1
    assert late["dependency_stalled"] > 0
    assert largest_reason(rank) == "blocking.memcpy_d2d"
