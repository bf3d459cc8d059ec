"""`python -m bench.simulate.ranks OUT --cause slow_device --seed 3 --ranks 8`: recordings, and what is true.

OUT becomes a folder of files whose names say nothing, and `truth.json` (`truth.as_json`, with the clocks, the
ranks of each file and the groups behind the hashes of communicators).
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from bench.simulate.ranks.clocks import Clock, draw_clocks
from bench.simulate.ranks.described import Cause, Hot, RanksRun
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.layout import Group
from bench.simulate.ranks.nccl import communicator
from bench.simulate.ranks.recorded import Capture, Files, Nccl, Written, write_ranks
from bench.simulate.ranks.truth import as_json
from bench.simulate.recorded import View


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, write, and say what was written."""
    asked = _asked(arguments)
    truth = draw_run(
        asked.seed,
        Cause(asked.cause),
        asked.ranks,
        step_count=asked.steps,
        hot=Hot(asked.hot) if asked.hot else None,
    )
    asked.out.mkdir(parents=True)
    clocks = draw_clocks(truth.run)
    capture = Capture(
        View(schema=asked.schema, ranges=asked.ranges),
        Files(asked.files),
        Nccl(asked.nccl),
        inits=not asked.no_inits,
        mpi=asked.mpi,
        ranks=asked.only,
    )
    written = write_ranks(truth.done, asked.out, clocks, capture)
    document = as_json(truth) | recorded_as_json(truth.run, clocks, written)
    (asked.out / "truth.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    whom = truth.ranks or "no rank"
    sys.stdout.write(
        f"{len(written)} files in {asked.out}: {asked.cause} of {whom}, {truth.effect_frac:.1%} of the run\n"
    )


def recorded_as_json(run: RanksRun, clocks: Sequence[Clock], written: Sequence[Written]) -> dict[str, object]:
    """What the files are: clocks by host, ranks of each file, groups behind communicators."""
    hashes = {
        (kind, group): communicator(run, kind, group[0])
        for rank in range(run.layout.world_size)
        for kind in Group
        if len(group := run.layout.group(kind, rank)) > 1
    }
    return {
        "clocks": [{"offset_ns": clock.offset_ns, "drift_ppm": clock.drift_ppm} for clock in clocks],
        "files": [
            {"name": one.path.name, "ranks": one.ranks, "session_start_ns": one.session_start_ns}
            for one in written
        ],
        "communicators": [
            {"hash": f"{hashed:016x}", "name": kind.value, "group": group}
            for (kind, group), hashed in hashes.items()
        ],
    }


def _asked(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m bench.simulate.ranks", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cause", choices=[cause.value for cause in Cause], default=Cause.NONE.value)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--hot", choices=[hot.value for hot in Hot])
    parser.add_argument("--files", choices=[files.value for files in Files], default=Files.RANK.value)
    parser.add_argument("--nccl", choices=[nccl.value for nccl in Nccl], default=Nccl.PAYLOADS.value)
    parser.add_argument("--no-inits", action="store_true")
    parser.add_argument("--mpi", action="store_true", help="ranks in MPI_RANKS")
    parser.add_argument("--only", type=lambda text: [int(rank) for rank in text.split(",")], help="0,3")
    parser.add_argument("--ranges", choices=["none", "steps", "layers"], default="steps")
    parser.add_argument("--schema", default="3.25.0")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
