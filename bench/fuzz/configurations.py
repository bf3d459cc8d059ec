"""Configurations of each kind with lines and words spoiled, under the name of any kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import diagnoser
from bench.fuzz.mutations import lines
from bench.fuzz.target import Target
from tests.places import DATA
from traces.settings.read import read_configuration

_OWN: Final = (
    "model: &m\n  num_moe_experts: 8\n  <<: {moe_router_topk: 2}\ntrain:\n  <<: *m\n  train_iters: !!int 5\n",
    '{"model": {"_target_": "a.B", "num_moe_experts": 8, "bf16": true}, "train": {"micro_batch_size": 1}}',
    "- model.num_moe_experts=8\n- model.moe_router_topk=2\n- train.global_batch_size=256\n",
    "set -e\nN=8; A=(--num-experts $N\n --moe-router-topk ${K:-2})\nfor i in 1 2; do torchrun pretrain_gpt.py"
    ' "${A[@]}" --lr 1e-4 $(cat <<EOF\n--bf16\nEOF\n) || exit $?; done\n',
)


@cache
def seeds() -> tuple[tuple[str, str], ...]:
    """Names and texts."""
    paths = sorted((DATA / "settings").iterdir())
    names = ("own.yaml", "own.json", "own.txt", "own.sh")
    files = [(path.name, path.read_text("utf-8")) for path in paths]
    return (*files, *files, *zip(names, _OWN, strict=True))


def begin(rng: Random) -> tuple[str, str]:
    """A whole configuration."""
    return rng.choice(seeds())


def spoil(rng: Random, one: tuple[str, str]) -> tuple[str, str]:
    """A line or a word changed, or the name's ending."""
    name, text = one
    if rng.random() < 0.05:
        return name.partition(".")[0] + rng.choice((".yaml", ".json", ".sh", ".txt", "")), text
    return name, lines(rng, text, rng.choice(seeds())[1])


def written(rng: Random, one: tuple[str, str]) -> tuple[str, bytes]:
    """The text."""
    name, text = one
    return name, text.encode("utf-8", rng.choice(("replace", "surrogatepass")))


def check(path: Path, deep: bool) -> None:
    """It is read; the whole way also judged."""
    read_configuration(path)
    if deep:
        diagnoser.check_config(path, ask_megatron=False).to_dict()


TARGET: Final = Target("configurations", begin, spoil, written, check)
