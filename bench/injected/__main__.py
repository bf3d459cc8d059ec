"""python -m bench.injected --out FOLDER: write pairs with their truth; --score: judge them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from bench.injected.handicaps import KINDS
from bench.injected.read import recordings
from bench.injected.scene import Unfit
from bench.injected.score import score, table
from bench.injected.truth import HARMLESS, Base, base_of, is_identity, write_harmless, write_pair

FOLDERS: Final = ("real", "added", "added-4")
"""Of MOE_DIAG_TRACES: those of real recordings."""


def main(words: Sequence[str] | None = None) -> None:
    """Write what the command line asks for; what cannot be edited goes to stderr, with why."""
    parser = argparse.ArgumentParser(prog="python -m bench.injected", description=__doc__)
    parser.add_argument(
        "--recordings", type=Path, action="append", help="a folder or file; else MOE_DIAG_TRACES"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kind", action="append", choices=[*KINDS, *HARMLESS], help="else all")
    parser.add_argument("--score", action="store_true", help="ask the product about the pairs that are there")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.score:
        sys.stdout.write(table(score(options.out, options.kind or ())))
        return
    folders = options.recordings or _given(parser)
    pairs: list[dict[str, Any]] = []
    for path, recording, steps in recordings(folders):
        base = base_of(path, recording, steps)
        if not is_identity(base):
            print(f"{path.name}: an edit of nothing does not give it back", file=sys.stderr)
            continue
        print(f"{path.name}: {len(steps.rows)} steps by {steps.by}", flush=True)
        for kind in options.kind or [*KINDS, *HARMLESS]:
            pairs += _pair(base, kind, options.seed, options.out)
        (options.out / "truth.json").write_text(json.dumps(pairs, indent=1), encoding="utf-8")


def _given(parser: argparse.ArgumentParser) -> list[Path]:
    """The real recordings of MOE_DIAG_TRACES, and those that lie beside their folders."""
    top = Path(os.environ.get("MOE_DIAG_TRACES") or parser.error("give --recordings, or set MOE_DIAG_TRACES"))
    beside = [path for path in sorted(top.iterdir()) if path.is_file()]
    return [*(top / name for name in FOLDERS if (top / name).exists()), *beside]


def _pair(base: Base, kind: str, seed: int, out: Path) -> list[dict[str, Any]]:
    """The truth of one pair, with its base's place; nothing where the recording cannot have it."""
    drawn = crc32(f"{seed} {base.name} {kind}".encode())
    try:
        truth = (write_harmless if kind in HARMLESS else write_pair)(base, kind, drawn, out)
    except (Unfit, ValueError) as why:
        print(f"  {kind}: {why}", file=sys.stderr)
        return []
    print(
        f"  {kind}: {truth.scope}, {truth.delta_ns} ns, {truth.delta_frac:+.1%}, left {truth.left_frac}",
        flush=True,
    )
    told = truth.told()
    told["base"] = str(out / truth.base if kind == "jitter" else base.path)
    return [told]


if __name__ == "__main__":
    main()
