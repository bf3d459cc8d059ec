"""python -m bench.third OUT: write runs of coupled ranks with their truth, a folder each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.third.handicaps import CAUSES, Kind
from bench.third.recorded import Ranges, Style, draw_style, write
from bench.third.run import Truth, draw_truth


def main(words: Sequence[str] | None = None) -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.third", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], action="append", help="else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1, help="seeds from that one on")
    parser.add_argument(
        "--ranges", choices=[ranges.value for ranges in Ranges], help="NVTX ranges, else drawn"
    )
    parser.add_argument("--even", action="store_true", help="windows from step to step, else as drawn")
    options = parser.parse_args(words)
    for seed in range(options.seed, options.seed + options.count):
        for kind in options.kind or [kind.value for kind in Kind]:
            try:
                truth = draw_truth(seed, Kind(kind))
            except ValueError as error:
                print(error)
                continue
            ranges = Ranges(options.ranges) if options.ranges else None
            style = draw_style(truth.world, truth.done, ranges, False if options.even else None)
            folder = options.out / f"{kind}-{seed}"
            folder.mkdir(parents=True)
            write(truth.world, truth.done, style, folder)
            (folder / "truth.json").write_text(json.dumps(_told(truth, style), indent=1), encoding="utf-8")
            print(folder)


def _told(truth: Truth, style: Style) -> dict[str, object]:
    """The truth in the words of the first author's files: times in us, waiting in ns."""
    done, base = truth.done, truth.base
    steps = range(truth.world.steps + 1)
    return {
        "family": truth.kind.value,
        "hands": [
            {
                "kind": one.kind.value,
                "cause": CAUSES[one.kind],
                "ranks": one.ranks,
                "accept": one.accept,
                "strength": one.strength,
                "steps": one.steps,
                "saves": saves,
            }
            for one, saves in zip(truth.hands, truth.saved_of_each, strict=False)
        ],
        "ends": {step: done.ends(step) for step in steps},
        "ends_base": {step: base.ends(step) for step in steps},
        "waits": {step: _waits(truth, step) for step in steps},
        "style": style.ranges.value,
        "pack": "node" if style.by_node else "rank",
        "ragged": style.ragged,
        "windows": style.windows_us,
        "clocks": [(one.offset_ns, one.drift_ppm, one.zero_ns) for one in style.clocks],
        "layout": asdict(truth.world.layout),
    }


def _waits(truth: Truth, step: int) -> dict[str, object]:
    caused: dict[int, int] = {}
    for where, last, _, us in truth.done.waits:
        if where == step:
            caused[last] = caused.get(last, 0) + round(us * 1_000)
    return {"wait": sum(caused.values()), "caused": caused}


if __name__ == "__main__":
    main()
