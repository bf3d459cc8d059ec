"""A thread that launches kernels one after the other, and what was resolved of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.simulate.recording import Recording
from tests.recordings.payloads import send
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measure.a2a import measure_a2a
from traces.missing import Missing
from traces.names.kernels import COMM_KINDS
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import CONFIDENCES, EVIDENCE, OPERATIONS, PHASES, Resolution
from traces.sections.rank import A2a
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline, Timeline

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
GROUPED = "void cutlass::device_kernel<GroupProblemShape>"
ATTENTION = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits>"
NORM = "transformer_engine::normalization::rmsnorm_fwd_tuned_kernel"
NORM_BACKWARD = "transformer_engine::normalization::rmsnorm_bwd_tuned_kernel"
ROUTER = "fused_topk_with_score_function_forward_kernel"
PERMUTE, SORT, UNPERMUTE = "_permute_kernel", "_sort_chunks_by_map_kernel", "_unpermute_kernel"
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<(int)4>, AdamFunctor>"
FILL = "void at::native::vectorized_elementwise_kernel<(int)4, FillFunctor>"


class Line:
    """One thread that launches kernels one after the other: each call takes 2 us, each kernel 10 us."""

    def __init__(self) -> None:
        self.recording, self.now = Recording(), 0
        self.blob_at: dict[int, bytes] = {}
        """Payloads of NCCL's ranges, by the start of the range, for `with_payloads`."""

    def run(self, name: str, stream: int = 7, length: int = 10, tid: int = 1000) -> None:
        at, self.now = self.now, self.now + 10 + length
        self.recording.kernel(
            name,
            at * 1_000 + 5_000,
            (at + 5 + length) * 1_000,
            launch_ns=at * 1_000 + 1_000,
            stream=stream,
            tid=tid,
        )

    def group(self, sends: int, receives: int, name: str = SENDRECV, stream: int = 20) -> None:
        """NCCL's ranges of one group, the kernel launched within its end."""
        begin = self.now * 1_000
        texts = ["ncclGroupStart"] + ["ncclSend"] * sends + ["ncclRecv"] * receives
        for place, text in enumerate(texts):
            self.recording.range(text, begin + 10 * place, begin + 10 * place + 5, domain=1, registered=True)
        self.recording.range("ncclGroupEnd", begin + 500, begin + 4_000, domain=1, registered=True)
        self.run(name, stream)

    def exchange(self, *peers: int, communicator: int = 7, stream: int = 20, receive: bool = True) -> None:
        """One group that sends to these peers, and receives from them, with payloads that say so."""
        begin = self.now * 1_000 + 10
        calls = [("ncclSend", peer) for peer in peers] + [("ncclRecv", peer) for peer in peers] * receive
        for place, (_, peer) in enumerate(calls):
            self.blob_at[begin + 10 * place] = send(communicator, 1_000, peer)
        sends, receives = (sum(text == call for text, _ in calls) for call in ("ncclSend", "ncclRecv"))
        self.group(sends, receives, stream=stream)

    def call(self, text: str, blob: bytes, name: str | None = None, stream: int = 20) -> None:
        """One NCCL call with a payload, and the kernel it launches, if any."""
        begin = self.now * 1_000
        self.blob_at[begin] = blob
        self.recording.range(text, begin, begin + 4_000, domain=1, registered=True)
        if name is None:
            self.now += 10
        else:
            self.run(name, stream)

    def within(self, text: str, name: str = SENDRECV, stream: int = 20) -> None:
        """A kernel launched inside a range."""
        begin = self.now
        self.run(name, stream)
        self.recording.range(text, begin * 1_000, begin * 1_000 + 4_500)

    def all(self, *names: str) -> None:
        for name in names:
            self.run(name)


Laid = Callable[[Line], None]


def group(sends: int, receives: int, stream: int = 20) -> Laid:
    """A group of sends and receives, as a part of `laid`."""
    return lambda line: line.group(sends, receives, stream=stream)


def on(stream: int, name: str = SENDRECV) -> Laid:
    """A kernel on another stream, as a part of `laid`."""
    return lambda line: line.run(name, stream)


def within(text: str, stream: int = 20, name: str = SENDRECV) -> Laid:
    """A kernel launched in a range, as a part of `laid`."""
    return lambda line: line.within(text, name, stream)


def laid(*parts: str | Laid) -> Line:
    """Compute kernels by name and what else there is, one after the other."""
    line = Line()
    for part in parts:
        if isinstance(part, str):
            line.run(part)
        else:
            part(line)
    return line


NO_ACCOUNT = Missing("", "nobody looked", "none")


def rank_of(path: Path) -> RankTimeline:
    timeline: Timeline = build(read_trace(path))
    return timeline.ranks[0]


Told = tuple[str, str | None, str | None, str, str]


def told(rank: RankTimeline, resolution: Resolution | None = None) -> list[Told]:
    """Kind, operation, phase, evidence, confidence of each communication kernel."""

    def word(words: Sequence[str], code: int) -> str | None:
        return None if code < 0 else words[code]

    found = resolution or resolve_kinds(rank)
    return [
        (COMM_KINDS[kind], word(OPERATIONS, operation), word(PHASES, phase), EVIDENCE[why], CONFIDENCES[sure])
        for kind, operation, phase, why, sure in zip(
            *(
                getattr(found, name).tolist()
                for name in ("kind", "operation", "phase", "evidence", "confidence")
            ),
            strict=True,
        )
    ]


def kinds(rank: RankTimeline) -> list[str]:
    return [row[0] for row in told(rank)]


def moe_layer(line: Line, sendrecv: Callable[[], None]) -> None:
    """One forward layer as Megatron-Core's all-to-all dispatcher launches it: 3 exchanges, 1 permute."""
    line.all(NORM, ATTENTION, NORM, ROUTER, PERMUTE)
    sendrecv()
    sendrecv()
    line.all(FILL, SORT, GROUPED, SORT)
    sendrecv()
    line.all(UNPERMUTE)


def measured(rank: RankTimeline, steps_us: list[tuple[int, int]]) -> A2a:
    """The account over these steps."""
    steps = tuple(Step(i, start * 1_000, end * 1_000) for i, (start, end) in enumerate(steps_us))
    chosen = from_steps("user", "the test's", steps)
    found = measure_a2a(rank, resolve_kinds(rank), chosen.windows, chosen, NO_ACCOUNT)
    assert isinstance(found, A2a)
    return found
