"""Earlier results, read back as they were written: exact, and refused with the place of what is wrong."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from heuristics.result.result import Result
from reports.result.read import is_result, of_one_run, read_result, typed
from traces.errors import NotAResult

GEMM, SENDRECV = "ampere_fp16_s16816gemm", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two steps of 1,000 ns: 600 of GEMM, 300 of SendRecv, 100 of nothing."""
    recording = Recording()
    recording.gpu()
    for step in (0, 1):
        begin = 1_000 * step
        recording.range(f"iteration {step}", begin, begin + 1_000)
        recording.kernel(GEMM, begin, begin + 600, launch_ns=begin - 10, grid=(8, 2, 1))
        recording.kernel(SENDRECV, begin + 600, begin + 900, launch_ns=begin - 5, stream=20)
    path = tmp_path_factory.mktemp("results") / "run.sqlite"
    write_export(path, recording)
    return diagnoser.analyze(path).to_dict()


def read(document: dict[str, Any]) -> Result:
    return of_one_run(typed(document))


def test_a_result_read_from_a_file_is_the_result_that_was_written(
    document: dict[str, Any], tmp_path: Path
) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "b.json.gz"
    plain.write_text(json.dumps(document, indent=2), encoding="utf-8")
    packed.write_bytes(gzip.compress(json.dumps(document).encode()))
    assert is_result(plain)
    assert is_result(packed)
    assert read_result(plain) == read_result(packed) == read(document)


def test_times_beyond_what_a_float_holds_stay_exact(document: dict[str, Any]) -> None:
    late = copy.deepcopy(document)
    begin = 1_700_000_000_000_000_001
    late["ranks"][0]["steps"]["used"] = [{"index": 0, "start_ns": begin, "end_ns": begin + 7}]
    late["ranks"][0]["ledger"] = [{**late["ranks"][0]["ledger"][0], "per_step_ns": [7]}]
    assert read(late).ranks[0].lengths_ns == (7,)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("schema_version",), "2.0", "its schema_version is 2.0; this moe-diag reads 1.x"),
        (("schema_version",), "new", "its schema_version is no number"),
        (("verdict",), "regression", "kind is missing. Make the result again: moe-diag compare"),
        (("ranks",), {}, "ranks: Expected `array`, got `object`. Make the result again: moe-diag analyze"),
        (("ranks", 0, "device"), None, "ranks[0].device: Expected `int`, got `null`"),
        (("ranks", 0, "budget_ns", "window"), -1, "ranks[0].budget_ns.window: Expected `int` >= 0"),
        (("ranks", 0, "ledger", 0, "per_step_ns"), [1, 2, 3, 4, 5],
         "ranks[0].ledger[0].per_step_ns is to have 1 entries, one per used step"),
        (("ranks", 0, "ledger", 0, "per_step_ns"), [1], "ranks[0].ledger does not add up to the steps"),
        (("ranks", 0, "ledger", 0, "group"), "x", "ranks[0].ledger[0].group: none of the known words"),
        (("ranks", 0, "timeline", "lanes", 0, "at_ns"), [0] * 9, "lanes[0] is to have at_ns, length_ns, key"),
        (("ranks", 0, "timeline", "lanes", 0, "key"), [7], "lanes[0].key has an entry that is no time, or"),
        (("ranks", 0, "timeline", "lanes", 0, "at_ns"), [2**63], "lanes[0].at_ns has an entry that is no"),
        (("ranks", 0, "timeline", "reasons", "reasons"), [], "reasons.reason has an entry that is no time"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(
    document: dict[str, Any], path: tuple[str | int, ...], value: object, says: str
) -> None:
    wrong: Any = copy.deepcopy(document)
    place = wrong
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(NotAResult, match=r".") as raised:
        read(wrong)
    assert says in str(raised.value)


def test_a_comparison_is_read_as_one_and_is_no_diagnosis_of_one_run(document: dict[str, Any]) -> None:
    compared = diagnoser.compare(document, document)
    assert typed(compared.to_dict()) == compared.result
    with pytest.raises(NotAResult, match="it is no diagnosis of one run but a comparison"):
        of_one_run(compared.result)


def test_a_gap_at_no_path_is_of_no_value(document: dict[str, Any]) -> None:
    odd = {"path": "]..[", "reason": "none", "cure": "none"}
    assert "]..[" in [gap.path for gap in read({**document, "missing": [odd]}).missing]
