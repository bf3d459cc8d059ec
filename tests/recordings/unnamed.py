"""Recordings with kernels of unknown class on a stream of their own, in round numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.simulate.recording import Recording

US = 1_000
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor>"
MAIN, OTHER = 7, 20


@dataclass
class Exchanging:
    """Steps of 2 ms: eight times a GEMM of 200 us and an exchange of 50 us; Adam stands for the last GEMM.

    `names` share the 50 us and `stream`, in their order. `ahead`: the next GEMM
    does not wait for them. `events`: waits are recorded. Only the first `some` layers of a step have them.
    `between`: a copy or memset that each waits on, on its stream, and that compute begins with.
    """

    names: tuple[str, ...] = ("exchange_kernel",)
    blocks: int = 24
    stream: int = OTHER
    events: bool = True
    ahead: bool = False
    steps: int = 3
    some: int = 8
    between: str = ""
    exchange_us: int = 50
    recording: Recording = field(default_factory=Recording)
    host_ns: int = 0

    def made(self) -> Recording:
        self.recording.gpu("NVIDIA H100 80GB HBM3", sm_count=132, capability=(9, 0), memory_bytes=80 << 30)
        for step in range(self.steps):
            begun, at = self.host_ns, (2_000 * step + 20) * US
            for layer in range(8):
                self._layer(at + 250 * layer * US, GEMM if layer < 7 else ADAM, layer < self.some)
            self.recording.range(f"iteration {step}", begun, self.host_ns)
            self.host_ns = (2_000 * (step + 1)) * US
        return self.recording

    def _layer(self, at: int, name: str, exchanges: bool) -> None:
        self._kernel(name, at, 250 - self.exchange_us if exchanges else 250, MAIN, 264)
        if not exchanges:
            return
        self._wait(MAIN, self.stream)
        self._between(at + (250 - self.exchange_us) * US, self.stream)
        each = self.exchange_us // len(self.names)
        for place, one in enumerate(self.names):
            begin = at + (100 if self.ahead else 250 - self.exchange_us + place * each) * US
            self._kernel(one, begin, each, self.stream, self.blocks)
        if not self.ahead:
            self._wait(self.stream, MAIN)
            self._between(at + 250 * US, MAIN)

    def _between(self, at: int, stream: int) -> None:
        if self.between == "memset":
            self.recording.memset(at, at + 1, size_bytes=64, launch_ns=self._call(), stream=stream)
        elif self.between == "copy":
            self.recording.copy("d2d", at, at + 1, size_bytes=64, launch_ns=self._call(), stream=stream)

    def _kernel(self, name: str, at: int, length: int, stream: int, blocks: int) -> None:
        self.recording.kernel(
            name, at, at + length * US, launch_ns=self._call(), stream=stream, grid=(blocks, 1, 1)
        )

    def _call(self) -> int:
        self.host_ns += 5 * US
        return self.host_ns

    def _wait(self, recorded: int, waiting: int) -> None:
        if not self.events or recorded == waiting:
            return
        one, other, number = self._call(), self._call(), self.host_ns
        record = self.recording.call("cudaEventRecord_v3020", one, one + US)
        self.recording.event_record(number, number, recorded, correlation_id=record)
        wait = self.recording.call("cudaStreamWaitEvent_v3020", other, other + US)
        self.recording.synchronisation(
            "stream wait",
            other,
            other + US,
            correlation_id=wait,
            stream=waiting,
            event_id=number,
            sync_id=number,
        )
