"""The process that asks: it opens nothing, writes nothing, and does not hold up who asked."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from diagnoser import megatron as check
from heuristics.rules.megatron.request import Request
from tests.megatron.conftest import Release
from tests.places import ROOT
from traces.limits import Limit

pytestmark = pytest.mark.megatron

FIELDS = {"num_layers": 2, "hidden_size": 256, "num_attention_heads": 2, "num_moe_experts": 8}
MOE = Request({**FIELDS, "expert_model_parallel_size": 8, "add_bias_linear": False}, world_size=8)
WATCHED = """
import json, os, sys
opened = []
def watch(event, args):
    if args and args[0] in ("/sbin/ldconfig", os.devnull):  # of a PyTorch for CUDA, as it is imported
        return
    if event.startswith("socket.") or event in ("subprocess.Popen", "os.system", "os.rename"):
        opened.append(event)
    if event == "os.mkdir" and not os.path.exists(args[0]):
        opened.append(event)
    if event == "open" and set(args[1] or "") & set("wxa+"):
        opened.append("write")
    if event == "open" and args[1] is None and args[2] & (os.O_WRONLY | os.O_RDWR):
        opened.append("write")
sys.addaudithook(watch)
import diagnoser.megatron.worker as worker
library = worker.Library()
requests = [worker.Request(**plain) for plain in json.load(sys.stdin)]
kinds = [answer.answer for request in requests for answer in worker.answers(library, request)]
sys.stdout.write(json.dumps({"kinds": kinds, "opened": opened}))
"""


def run(program: str, requests: list[Request], python: str = sys.executable) -> dict[str, list[str]]:
    told = json.dumps([asdict(request) for request in requests])
    done = subprocess.run(
        [python, "-B", "-c", program],
        cwd=ROOT,
        env=check.worker_environment(),
        input=told,
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, list[str]] = json.loads(done.stdout)
    return said


def test_it_opens_no_connection_and_writes_no_file(release: Release) -> None:
    said = run(WATCHED, [MOE, replace(MOE, world_size=1024), replace(MOE, world_size=9)], release.python)
    assert said == {"kinds": ["ok", "ok", "ok", "ok", "ok", "not_checked"], "opened": []}


@pytest.mark.usefixtures("megatron")
def test_one_that_hangs_costs_its_limit_and_leaves_the_rest_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "REQUEST_S", Limit(2.0, "seconds", "ours: a test"))
    started = time.monotonic()
    answers = check.check_with_megatron([MOE, replace(MOE, world_size=2**26), MOE])
    assert [(config.answer, layer.answer) for config, layer in answers] == [
        ("ok", "ok"),
        ("ok", "not_checked"),
        ("not_checked", "not_checked"),
    ]
    assert "in time" in answers[2][0].text
    assert time.monotonic() - started < 60


@pytest.mark.usefixtures("megatron")
def test_the_diagnosis_itself_imports_neither_pytorch_nor_megatron_core() -> None:
    program = (
        "import sys; from diagnoser.cli import run; import diagnoser.megatron; code = run(['demo']);"
        "assert code == 0; sys.stderr.write(str({'torch', 'megatron'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "set()")
