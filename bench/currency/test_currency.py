"""What a release has that the tables do not know; and that they know what the releases that we claim have."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.currency.__main__ import gone, unknown
from bench.currency.found import Fact, facts
from bench.currency.read import TEXTS, Name, releases, remember
from bench.currency.source import NotARelease, Source, opened
from bench.currency.tables import core_of, knows, read_in
from heuristics.config.versions import CORE_OF_BRIDGE
from traces.settings.knobs import Release, release

CONFIG = "megatron/core/transformer/transformer_config.py"
ARGUMENTS = "megatron/training/arguments.py"
PRESETS = "megatron/bridge/perf_recipes/deepseek/b200/deepseek_v3.py"
CORE = {
    "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 19\nPATCH = 2\n",
    CONFIG: """
class TransformerConfig:
    num_moe_experts: int | None = None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] = "alltoall"

    def __post_init__(self):
        if self.num_moe_experts == 0:
            raise ValueError("num_moe_experts must not be 0")
""",
    ARGUMENTS: """
def add(group):
    group.add_argument("--moe-router-topk", type=int, default=2)
    group.add_argument("--rl-partial-rollouts", action=argparse.BooleanOptionalAction, default=False)
    ArgumentGroupFactory(Rates, exclude=left_out).build_group(group)

left_out = ["own"]

class Rates:
    manual_gc: bool = False
    own: int = 1
""",
}
BRIDGE = {
    "megatron/bridge/package_info.py": "MAJOR = 0\nMINOR = 6\nPATCH = 2\n",
    "megatron/bridge/training/config.py": "class ConfigContainer:\n    model: GPTModelProvider\n",
    PRESETS: """
def deepseek_v3_pretrain_256gpu_b200_bf16_config():
    cfg = _sizes()
    return cfg

def _sizes():
    return 8
""",
}


def written(root: Path, texts: dict[str, str]) -> Source:
    for path, text in texts.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return opened(root)


def name_of(source: Source) -> Name:
    return Name(source.package, source.release)


def listed(source: Source, file: Path) -> list[tuple[str, str]]:
    """Kind and place of all that is unknown, beside releases that were read into a file."""
    found = facts(source, read_in())
    return [one[:2] for one in unknown(found, core_of(source), source.package == "core", file)]


@pytest.mark.parametrize("name", releases(), ids=str)
def test_the_tables_know_what_a_release_that_was_read_has(name: Name) -> None:
    core = name.release if name.package == "core" else release(CORE_OF_BRIDGE[name.release[:2]])
    assert core is not None
    assert [*map(str, unknown(releases()[name], core, name.package == "core"))] == []
    assert {fact.kind for fact in releases()[name]} >= {"field", "choice", "refusal"}


def test_the_releases_that_we_claim_were_read() -> None:
    read = {str(name) for name in releases()}
    assert {"core 0.16.1", "core 0.17.1", "core 0.18.2", "core 0.19.2"} <= read
    assert {"bridge 0.3.1", "bridge 0.4.2", "bridge 0.5.1", "bridge 0.6.2"} <= read
    minors = {name.release[:2] for name in releases() if name.package == "bridge"}
    assert minors == {*CORE_OF_BRIDGE}


def test_no_text_of_others_is_kept() -> None:
    texts = [fact for several in releases().values() for fact in several if fact.kind in TEXTS]
    assert {len(fact.detail) for fact in texts} == {8}


def test_what_is_new_is_listed_by_kind_and_place(tmp_path: Path) -> None:
    source, file = written(tmp_path / "a", CORE), tmp_path / "read"
    refusal = ("refusal", f"{CONFIG}, TransformerConfig.__post_init__")
    assert listed(source, file) == [refusal]
    remember(name_of(source), facts(source, read_in()), file)
    assert listed(source, file) == []
    later = {
        **CORE,
        CONFIG: CORE[CONFIG]
        .replace("num_moe_experts: int", "moe_quark_count: int = 1\n    num_moe_experts: int")
        .replace('"flex"]', '"flex", "wormhole"]')
        .replace("== 0", "<= 0"),
        ARGUMENTS: CORE[ARGUMENTS]
        .replace("default=2", "default=4")
        .replace("--rl-partial-rollouts", "--quark-colour")
        .replace("own: int", "quark_mass: int"),
    }
    assert listed(written(tmp_path / "b", later), file) == [
        ("field", "model.moe_quark_count"),
        ("choice", "model.moe_token_dispatcher_type"),
        ("default", "moe_router_topk"),
        ("flag", "--quark-colour"),
        ("flag", "--no-quark-colour"),
        ("flag", "--quark-mass"),
        refusal,
    ]


def test_a_field_that_a_release_had_before_the_tables_have_it_is_listed(tmp_path: Path) -> None:
    config = CORE[CONFIG].replace(
        "num_moe_experts: int", "moe_paged_stash: bool = False\n    num_moe_experts: int"
    )
    earlier = {**CORE, CONFIG: config, "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 17\nPATCH = 1\n"}
    assert ("field", "model.moe_paged_stash") in listed(written(tmp_path, earlier), tmp_path / "read")
    assert knows(Fact("field", "model.moe_paged_stash"), Release((0, 18, 0)), True)


def test_what_a_release_has_no_more_is_listed_while_the_tables_have_it(tmp_path: Path) -> None:
    source, file = written(tmp_path / "a", CORE), tmp_path / "read"
    remember(name_of(source), facts(source, read_in()), file)
    later = {**CORE, "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 20\nPATCH = 0\n"}
    later[CONFIG] = CORE[CONFIG].replace("num_moe_experts: int", "expert_count: int")
    after = written(tmp_path / "b", later)
    lost = gone([*facts(after, read_in())], name_of(after), core_of(after), file)
    assert [*map(str, lost)] == ["field model.num_moe_experts"]


def test_a_preset_is_new_where_what_its_function_calls_changed(tmp_path: Path) -> None:
    source, file = written(tmp_path / "a", BRIDGE), tmp_path / "read"
    remember(name_of(source), facts(source, read_in()), file)
    assert listed(source, file) == []
    said = {**BRIDGE, PRESETS: BRIDGE[PRESETS].replace("    cfg = ", '    """Sizes of B200."""\n    cfg = ')}
    assert listed(written(tmp_path / "b", said), file) == []
    changed = {**BRIDGE, PRESETS: BRIDGE[PRESETS].replace("return 8", "return 16")}
    name = "deepseek_v3_pretrain_256gpu_b200_bf16_config"
    assert listed(written(tmp_path / "c", changed), file) == [("preset", name)]


def test_a_folder_without_either_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotARelease, match="give a wheel or a checkout"):
        opened(tmp_path)
