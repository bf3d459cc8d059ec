"""Traces read by the workers of a cluster: the same document, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.running.work import cluster as ours
from diagnoser.running.work import measured
from diagnoser.running.work.cluster import Cluster
from diagnoser.running.work.measured import MeasuredTrace, TraceTask, measure_all, measure_trace
from tests.hostile.clusters import Killer, document, local_cluster, processes_of, small_traces
from tests.places import ROOT
from traces.errors import ClusterUnavailable, InputError, NotShared
from traces.formats.open import ReadOptions
from traces.limits import Limit
from traces.progress import silent
from traces.steps.selection import Selection

SOMEWHERE = "tcp://127.0.0.1:8786"


@pytest.fixture(scope="module")
def dask() -> None:
    """The package that clusters are of."""
    if find_spec("distributed") is None:
        pytest.skip("distributed is not installed: would have shown that a cluster gives the same document")


@pytest.fixture(scope="module")
def cluster(dask: None) -> Iterator[Any]:
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return small_traces(tmp_path_factory.mktemp("run"), 8)


@pytest.fixture(scope="module")
def serial(traces: list[Path]) -> bytes:
    return document(traces)


def test_a_cluster_gives_the_serial_document_though_a_worker_is_killed_midway(
    cluster: Any, traces: list[Path], serial: bytes
) -> None:
    killer = Killer(cluster, after=3)
    assert document(traces, cluster.scheduler_address, killer) == serial
    assert killer.killed
    assert killer.killed not in processes_of(cluster)
    assert any(doing.startswith("7 of 8 done, ") for doing in killer.heard)
    assert json.loads(serial)["combined"]


def tasks(paths: list[Path], folder: Path | None = None) -> dict[str, TraceTask]:
    return {
        str(path): TraceTask(path, Selection(), ReadOptions(), None, False, folder=folder) for path in paths
    }


def test_a_trace_that_ends_every_worker_is_named_and_the_others_go_on(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch, dask: None
) -> None:
    monkeypatch.setattr(measured, "measure_trace", unless_it_is_poison)
    poison = traces[3].with_name("damaged.sqlite")
    poison.write_bytes(traces[3].read_bytes())
    with local_cluster(allowed_failures=0) as fragile:
        found = diagnoser.analyze([*traces[:3], poison], scheduler=fragile.scheduler_address)
    assert (
        "damaged.sqlite was skipped: the process that read it was ended from outside" in found.result.warnings
    )
    assert "perhaps because memory ran out. Start workers with more memory" in found.skipped[0]
    assert [one.name for one in found.result.traces] == [path.name for path in traces[:3]]


def unless_it_is_poison(task: TraceTask) -> MeasuredTrace | InputError:
    if task.path.name == "damaged.sqlite":
        os.kill(os.getpid(), signal.SIGKILL)
    return measure_trace(task)


def test_a_trace_that_no_worker_sees_is_named_without_a_host(
    cluster: Any, traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(traces[0].parent)
    name = Path(traces[0].name)
    with Cluster(cluster.scheduler_address, silent) as elsewhere:
        (found,) = measure_all(elsewhere, tasks([name], folder=tmp_path))
    assert isinstance(found, NotShared)
    assert str(found) == (
        f"{name} is here, but a worker of the cluster cannot read it. "
        "Put it where all workers see it, under the same path."
    )


def test_workers_of_another_version_are_named(
    cluster: Any, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {**ours.versions(), "moe-diag": "9.9"}
    monkeypatch.setattr(ours, "versions", lambda: there)
    with pytest.raises(
        ClusterUnavailable, match=r"a worker of the cluster has moe-diag .*, and here is 9\.9"
    ):
        document(traces, cluster.scheduler_address)


@pytest.mark.parametrize(("words", "said", "code"), [
    (["--scheduler", "nonsense"], "'nonsense' is no address of a scheduler. Give one as --scheduler", 2),
    (["--scheduler", SOMEWHERE, "--jobs", "2"], "--scheduler for workers of a cluster. Give one.", 2),
    (["--scheduler", "tls://127.0.0.1:8786"], "needs certificates: name them in dask's configuration", 2),
])  # fmt: skip
def test_what_cannot_be_a_cluster_is_one_line(
    words: list[str], said: str, code: int, capsys: pytest.CaptureFixture[str], dask: None
) -> None:
    assert run(["analyze", "run.sqlite", *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_without_a_scheduler_at_the_address_one_line_names_what_to_start(
    capsys: pytest.CaptureFixture[str], dask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "CONNECTS", Limit(0.5, "seconds", "a test's"))
    assert run(["analyze", "run.sqlite", "--scheduler", "tcp://127.0.0.1:9"]) == 3
    assert capsys.readouterr().err == (
        "moe-diag: no scheduler answers at tcp://127.0.0.1:9. Start one with dask scheduler; it prints its "
        "address.\n"
    )


def test_without_a_worker_one_line_names_what_to_start(
    traces: list[Path], dask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "WORKERS_COME", Limit(0.5, "seconds", "a test's"))
    with (
        local_cluster(workers=0) as empty,
        pytest.raises(ClusterUnavailable, match="Start one with dask worker tcp://127"),
    ):
        document(traces, empty.scheduler_address)


def test_without_the_package_one_line_names_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "find_spec", lambda _: None)
    assert run(["analyze", "run.sqlite", "--scheduler", SOMEWHERE]) == 3
    assert capsys.readouterr().err == (
        "moe-diag: --scheduler needs the package distributed. Type pip install 'moe-diag[cluster]'\n"
    )


_WATCHED = """
import sys
seen = set()
def watch(event, found):
    if event in ("socket.connect", "socket.bind", "socket.sendto") and isinstance(found[1], tuple):
        seen.add(found[1][:2])
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        seen.add(found[0])
sys.addaudithook(watch)
from diagnoser.cli import run
code = run(sys.argv[1:])
print(sorted(map(str, seen)), file=sys.stderr)
sys.exit(code)
"""


def connections(*words: str) -> str:
    """What a command opens to the network."""
    command = [sys.executable, "-c", _WATCHED, "analyze", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return ended.stderr.strip()


def test_the_network_is_opened_to_the_scheduler_alone(cluster: Any, traces: list[Path]) -> None:
    address = cluster.scheduler_address
    host, port = address.removeprefix("tcp://").split(":")
    paths = [str(path) for path in traces[:2]]
    assert connections(*paths, "--jobs", "2") == "[]"
    opened = connections(*paths, "--scheduler", address)
    assert opened == f"[\"('{host}', {port})\", '{host}']"


def test_the_slurm_example_runs_with_local_workers_in_place_of_srun(
    traces: list[Path], serial: bytes, tmp_path: Path, dask: None
) -> None:
    """`srun` here starts its command once for each of two nodes; all else is the example as it is."""
    srun = tmp_path / "srun"
    srun.write_text(
        "#!/bin/bash\ntrap 'kill $(jobs -p)' TERM\nfor node in 1 2; do \"$@\" & done\nwait\nwait\n"
    )
    srun.chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1", "TMPDIR": str(tmp_path), "PATH": path}
    script = ROOT / "docs" / "examples" / "slurm_ranks.sbatch"
    out = tmp_path / "run.json"
    ended = subprocess.run(
        ["bash", str(script), *map(str, traces), "-o", str(out)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **given},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(out.read_bytes()) == json.loads(serial)
