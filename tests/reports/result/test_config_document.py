"""The JSON contract with a configuration, a log and symptoms in it; and what never gets into any output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import diagnoser
from bench.simulate.export import write_export
from diagnoser.cli import run
from reports.content.blocks import Detail
from reports.result.codec import Document
from reports.result.json_text import render_json
from tests.agreement.untold import nulls, unexplained
from tests.configurations.check import (
    ABOUT,
    BRIDGE,
    CONTRADICTS,
    ILLEGAL,
    SCRIPT,
    log,
    log_lines,
    script,
    symptoms,
    written,
)
from tests.configurations.logs import crash, out_of_memory
from tests.doubles.document import DISPATCH, exposed
from tests.read_back.rendering import PICTURES, forms_of
from tests.read_back.rendering import text as rendered_text
from tests.read_back.schema import validate
from traces.settings.knobs import knobs

GIVEN = {"gpu": "H100", "core_version": "0.16.1"}
SECRET = "hunter2_sesame"
SECRETS = (SECRET, f"/home/{SECRET}/ckpt", f"hf_{SECRET}", f"{SECRET}.cluster.local", f"s3://{SECRET}/x")


def check(path: Path, **how: object) -> Document:
    return diagnoser.check_config(path, about=GIVEN, ask_megatron=False, **how).to_dict()  # type: ignore[arg-type]


def trace(folder: Path, name: str = "run.sqlite") -> Path:
    path = folder / name
    write_export(path, exposed(comm=DISPATCH))
    return path


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Document]]:
    """Every kind of document that has a configuration, a log or symptoms in it; made in a secret's folder."""
    return [*made(tmp_path_factory.mktemp(SECRET))]


def made(folder: Path) -> Iterator[tuple[str, Document]]:
    good, said, judged = script(folder), log(folder, step_ms=10.0), symptoms(folder)
    short = written(folder, "short.log", log_lines()[0] + "\n")
    yield "good", check(good)
    yield "judged", check(good, symptoms=judged)
    yield "logged", check(good, log=said)
    yield "all", check(good, symptoms=judged, log=said)
    yield "short log", check(good, log=short)
    full = written(folder, "oom.log", "\n".join([*log_lines()[:9], *crash("forward", last=out_of_memory())]))
    yield "out of memory", check(good, log=full)
    yield "illegal", check(written(folder, "illegal.yaml", ILLEGAL), symptoms=judged)
    yield "contradicts", check(written(folder, "two.yaml", CONTRADICTS))
    yield "unknown names", check(written(folder, "odd.yaml", BRIDGE.replace("num_layers", "num_layerz")))
    yield "overrides", check(written(folder, "over.txt", "model.moe_grouped_gemm=true\n"))
    path, how = trace(folder), {"about": GIVEN, "ask_megatron": False}
    yield "trace", diagnoser.analyze(path, config=good, log=said, **how).to_dict()  # type: ignore[arg-type]
    yield "trace, log", diagnoser.analyze(path, log=said, ask_megatron=False).to_dict()
    yield "trace alone", diagnoser.analyze(path).to_dict()
    yield "no gpu", diagnoser.check_config(good, log=said, ask_megatron=False).to_dict()


def test_every_document_is_valid_plain_and_says_why_a_value_is_null(
    documents: list[tuple[str, Document]],
) -> None:
    count = 0
    for name, document in documents:
        validate(document)
        assert unexplained(document) == [], name
        assert json.loads(render_json(document)) == document, name
        count += len(nulls(document))
    assert count > 100


def test_no_entry_hides_a_value_that_is_told(documents: list[tuple[str, Document]]) -> None:
    """An entry for a whole section would make the check above easy to pass."""
    for name, document in documents:
        whole = {gap["path"] for gap in document["missing"]}
        for key in ("configuration", "rules", "experiments", "memory_estimate", "throughput"):
            assert (key in whole) == (document[key] is None), (name, key)


def test_the_keys_of_the_contract_are_there_with_or_without_a_configuration(
    documents: list[tuple[str, Document]],
) -> None:
    both = {"configuration", "rules", "workflow", "experiments", "memory_estimate", "throughput", "log"}
    for name, document in documents:
        assert both | {"config_findings", "verdict", "walls", "fixes", "levers", "refused"} <= set(document)
        fixes = [*document["fixes"], *document["levers"]]
        assert all({"checked", "after", "room"} <= set(fix) for fix in fixes), name
        assert ("about" in document) == (not document["traces"]), name
        first = document["fixes"][:1]
        assert not [one for fix in first for one in fix["preconditions"] if one["state"] == "unmet"]


def test_a_file_is_named_by_its_base_name(documents: list[tuple[str, Document]]) -> None:
    for name, document in documents:
        assert SECRET not in json.dumps(document), name


def test_a_text_is_shown_only_where_the_frameworks_themselves_have_it(tmp_path: Path) -> None:
    text = SCRIPT.replace("--bf16", f"--bf16 --tp-comm-overlap-cfg /home/{SECRET}")
    document = check(written(tmp_path, "run.sh", text.replace("CONNECTIONS=1", f"CONNECTIONS={SECRET}")))
    shown = {one["knob"]: one for one in document["configuration"]["settings"]}
    assert shown["moe_token_dispatcher_type"]["value"] == "alltoall"
    assert shown["num_layers"]["value"] == 48
    hidden = [knob for knob, one in shown.items() if one["withheld"]]
    assert set(hidden) >= {"tp_comm_overlap_cfg", "env.CUDA_DEVICE_MAX_CONNECTIONS"}
    assert all(shown[knob]["value"] is None for knob in hidden)


def planted_yaml(secret: str) -> Iterator[str]:
    """A YAML with the secret as each value in turn, under every knob, and under names of its own."""
    tree = yaml.safe_load(BRIDGE)
    for group, fields in tree.items():
        for name in fields if isinstance(fields, dict) else ():
            yield yaml.safe_dump({**tree, group: {**fields, name: secret}})
    paths = [knob.bridge for knob in knobs().values() if knob.bridge]
    yield "\n".join([BRIDGE_LINES, *(f'{path}="{secret}"' for path in paths)])
    more = {"load": secret, "save": secret, "async_save": secret, secret: secret}
    yield yaml.safe_dump({**tree, "checkpoint": more, "logger": {"wandb_project": secret}, secret: {"a": 1}})


BRIDGE_LINES = "model.num_layers=48\nmodel.num_moe_experts=128\nmodel.expert_model_parallel_size=8"


def planted_script(secret: str) -> str:
    """A script with the secret in every text, path, variable and comment."""
    flags = " ".join(
        f'{knob.flag} "{secret}"' for knob in knobs().values() if knob.flag and "str" in knob.kind
    )
    exports = "\n".join(
        f'export {knob.id.removeprefix("env.")}="{secret}"'
        for knob in knobs().values()
        if knob.id.startswith("env.")
    )
    more = f'--load "{secret}" --save "{secret}" --data-path 1.0 "{secret}" --{SECRET} "{secret}" {flags}'
    text = SCRIPT.replace("--bf16", f"--bf16 {more}").replace("# A mixture", f"# {secret} A mixture")
    return text.replace("GPUS=8", f'{exports}\nexport WANDB_API_KEY="{secret}"\ncd "{secret}"\nGPUS=8')


def planted_log(secret: str) -> str:
    """A log with the secret in host names, arguments, paths of a traceback and messages."""
    block = "------------------------ arguments ------------------------"
    lines = [
        f"{secret}: PyTorch version ... 2.9.0",
        block,
        *(f"  {name} ................................. {secret}" for name in ("load", "save", "data_path")),
        f"  moe_token_dispatcher_type ....................... {secret}",
        "  num_layers ...................................... 48",
        "-------------------- end of arguments ---------------------",
        *(f"{secret}: {line} {secret}" for line in log_lines()),
        f"WARNING: {secret} DeepEP is not supported on {secret}",
        *crash(f"forward@/home/{SECRET}/model.py", last=out_of_memory() + f" {secret}"),
        f"{secret}: ValueError: {secret} moe_token_dispatcher_type must be flex",
    ]
    return "\n".join(lines) + "\n"


def rendered(document: Document) -> Iterator[str]:
    for form in forms_of(document):
        if form not in PICTURES:
            yield rendered_text(document, form, Detail.FULL)


def holds(text: str) -> list[str]:
    return re.findall(rf".{{0,60}}{SECRET}.{{0,20}}", text)


def test_no_secret_of_a_yaml_is_in_any_output(tmp_path: Path) -> None:
    judged, count = symptoms(tmp_path), 0
    for secret in SECRETS[:3]:
        for said in planted_yaml(secret):
            path = written(tmp_path, "run.txt" if said.startswith("model.") else "run.yaml", said)
            document = check(path, symptoms=judged)
            assert [found for out in rendered(document) for found in holds(out)] == []
            count += 1
    assert count > 50


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_of_a_script_or_a_log_is_in_any_output(tmp_path: Path, secret: str) -> None:
    path = written(tmp_path, "run.sh", planted_script(secret))
    said = written(tmp_path, "train.log", planted_log(secret))
    for document in (
        check(path, log=said, symptoms=symptoms(tmp_path)),
        check(written(tmp_path, "args.log", planted_log(secret)), log=said),
        diagnoser.analyze(trace(tmp_path), config=path, log=said, ask_megatron=False).to_dict(),
    ):
        assert [found for out in rendered(document) for found in holds(out)] == []
        assert document["log"]["iteration_count"] == 20


@pytest.mark.parametrize("form", ["text", "markdown", "json", "csv"])
def test_no_secret_comes_out_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = written(tmp_path, "run.sh", planted_script(SECRET))
    said = written(tmp_path, "train.log", planted_log(SECRET))
    options = ["--config", str(path), "--log", str(said), *ABOUT, "-f", form, "--full"]
    assert run(["analyze", str(trace(tmp_path)), *options]) == 0
    out = capsys.readouterr()
    assert holds(out.out + out.err) == []
