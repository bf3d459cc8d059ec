"""What the page of two runs without a trace says, read as it is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from heuristics.comparison import gate as gates
from heuristics.comparison.files.comparison import compare_files
from heuristics.comparison.files.side import FileSide
from reports.content.page import Asked, Detail
from reports.formats import FORMATS
from tests.configurations.pairs import logged, said

MODEL = "model:\n  num_layers: 8\n  hidden_size: 64\n  num_moe_experts: 8\n  expert_model_parallel_size: 4\n"
CHANGES = (
    "  mtp_num_layers: 1\n  recompute_granularity: full\n  recompute_method: uniform\n"
    "  recompute_num_layers: 1\n  moe_flex_dispatcher_backend: deepep\n  moe_deepep_num_sms: 24\n"
    "  calculate_per_token_loss: true\n  hidden_dropout: 0.2\n  layernorm_epsilon: 0.1\n"
    "  moe_aux_loss_coeff: 0.2\n  moe_z_loss_coeff: 0.1\n  attention_dropout: 0.2\n"
)


def text(
    base: FileSide, new: FileSide, detail: Detail = Detail.FIRST, gate: gates.Asked | None = None
) -> str:
    """What is printed, with each run of blanks as one."""
    written = FORMATS["text"].write(compare_files(base, new, gate), Asked(detail))
    return " ".join(str(written).split())


def run(tmp_path: Path, config: str, seconds: list[float], name: str) -> FileSide:
    """A side of a configuration and a log, of release 0.16.1."""
    one = said(MODEL + config, name, core_version="0.16.1")
    return replace(one, log=logged(tmp_path, seconds, name=f"{name}.log").log)


def test_what_makes_runs_another_is_said_before_what_differs() -> None:
    other = said(MODEL.replace("num_layers: 8", "num_layers: 12") + "  mtp_num_layers: 1\n")
    found = text(said(MODEL), other)
    assert "NOT COMPARABLE Not judged, as the runs are not comparable." in found
    assert "Why not comparable - model: num_layers 8 -> num_layers 12." in found
    assert "No cause is named: the runs are not comparable." in found
    assert "MTP layers are trained" not in found
    assert "MTP layers are trained" in text(said(MODEL), other, Detail.FULL)


def test_the_known_change_that_fits_leads_and_the_rest_is_counted(tmp_path: Path) -> None:
    base = run(tmp_path, "", [2.0, 2.02] * 10, "base")
    new = run(tmp_path, CHANGES, [2.6, 2.62] * 10, "new")
    found = text(base, new)
    assert "LIKELY CAUSE Whole layers are recomputed (recompute_granularity). Confidence low." in found
    assert "POSSIBLE CAUSE MTP layers are trained (mtp_num_layers)." in found
    assert "1 more known change: --full" in found
    assert "more change: --full" in found or "more changes: --full" in found
    assert "Also moe_deepep_num_sms differs without an effect on a step." in found
    whole = text(base, new, Detail.FULL)
    assert "OTHER WAY A loss keeps the experts' loads even (moe_aux_loss_coeff)." in whole
    assert "moe_deepep_num_sms: 20 (default) -> 24 (" in whole
    assert "only DeepEP reads it, and neither side has that" in whole


def test_a_text_that_is_withheld_differs_and_is_not_shown() -> None:
    names = ("LayerNorm", "RMSNorm")
    hidden = [
        replace(
            said(f"{MODEL}  normalization: {name}\n"),
            shown=lambda _, value: None if value in names else value,
        )
        for name in names
    ]
    found = text(hidden[0], hidden[1])
    assert "normalization: differs, its texts are withheld" in found
