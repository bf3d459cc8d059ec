"""Results of the library: what they call themselves, and where they can be saved."""

from __future__ import annotations

from pathlib import Path

import pytest

import moe_diag

CONFIG = "model:\n  num_layers: 8\n  hidden_size: 64\n  num_moe_experts: 8\n"


def layouts() -> moe_diag.Layouts:
    return moe_diag.plan("Qwen3-30B-A3B", gpus=16, about={"gpu": "H100"})


def test_layouts_name_model_and_gpus_and_say_what_is_recomputed() -> None:
    found = layouts()
    assert repr(found) == f"<Layouts of {found.result.about} on 16 H100: {len(found.result.layouts)}>"
    text = " ".join(found.text(full=True).split())
    assert "Recompute: " in text or "Nothing is recomputed." in text
    assert "What orders it" in text


def test_a_result_is_saved_once_and_in_formats_that_it_has(tmp_path: Path) -> None:
    found, path = layouts(), tmp_path / "layouts.json"
    assert found.save(path) == path
    with pytest.raises(moe_diag.UsageError, match="overwrite=True to replace it"):
        found.save(path)
    found.save(path, overwrite=True)
    with pytest.raises(moe_diag.UsageError, match=r"this result has no perfetto\. It has "):
        found.save(tmp_path / "layouts.perfetto.json")
    with pytest.raises(moe_diag.MoeDiagError, match=r"cannot be written \(.*\)\. Name another\."):
        found.save(tmp_path / "none" / "layouts.json")


def test_a_comparison_of_files_names_its_verdict(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    found = moe_diag.compare_files(config, config)
    assert repr(found) == "<Comparison of files: undecided>"
