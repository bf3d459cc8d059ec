"""Where kept documents come from: runs, pairs and configurations, drawn or of the demo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import diagnoser
from bench.compare_score.cases import kinds, sides, views
from bench.compare_score.causes import CAUSES
from bench.compare_score.sides import Side, diagnosed, simulate
from bench.second.ranks_truth import draw_truth as second_truth
from bench.simulate.export import write_export
from bench.simulate.frames import sample, with_functions
from bench.simulate.knobs import draw_knobs
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, Extent
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, Files, Nccl, write_ranks
from bench.simulate.recorded import View, draw_view, record
from bench.simulate.recording import Recording
from bench.simulate.run import run_program
from bench.simulate.step import program_of
from bench.third.handicaps import Kind
from bench.third.recorded import draw_style, write
from bench.third.run import draw_truth as third_truth
from diagnoser.demo import RECORDINGS, SEVERAL, unpack
from heuristics.judging.judgement import judge_observed
from heuristics.late.run import judge, run_of
from heuristics.rules.rules import known_lines
from tests.configurations.config_cases import CASES
from tests.configurations.pairs import PAIRS, config_of, truth
from tests.kept.altered import CONFIGURATIONS, LOGS, altered
from tests.kept.exchanges import AUTOGRAD, draw_exchanges
from tests.kept.facts import facts
from tests.kept.pairs import both_sides
from tests.kept.profiles import draw_profile
from tests.kept.rank_sets import draw_ranks
from tests.kept.spoiled import spoiled
from tests.kept.stages import draw_pipeline
from tests.kept.trainings import draw_training, draw_trainings
from tests.megatron.random_runs import drawn_run, random_run
from tests.places import DATA
from tests.recordings.kineto import as_profiler_json
from tests.second_definition.drawn import draw
from traces.errors import MoeDiagError
from traces.ranks.one_run.mixed import refuse_mixed
from traces.ranks.one_run.together import put_together
from traces.ranks.summaries.codec import encode
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import RankSummary
from traces.settings.effective import effective
from traces.settings.read import configuration_of
from traces.training import AUTOGRAD_THREAD
from traces.training_log.read import read_log

Documents = Iterator[tuple[str, Mapping[str, Any]]]
"""A name, and the document of that name."""
PAIRS_SEED, EACH, FEW, MANY = 7_000_000, 20, 9, 50
STRENGTH, STEPS = 0.6, 6
PUBLISHED: Final = ("Qwen3-30B-A3B", "DeepSeek-V3", "Mixtral-8x7B", "gpt-oss-120b", "Qwen3-235B-A22B")
CAPTURES: Final = (
    Capture(mpi=True),
    Capture(files=Files.HOST),
    Capture(files=Files.ALL, inits=False),
    Capture(nccl=Nccl.PAYLOADS, inits=False, mpi=True),
)
CORES: Final = ("0.12.0", "0.14.0", "0.16.0", "0.17.0", None)
"""Versions of Megatron-Core, and none."""
GPUS: Final = ("H100", "GB200", "B200", "A100", "H20")
SAMPLED_NS: Final = 200_000
CONFIGURED: Final = [*(config_of(pair, "base") for pair in PAIRS), None]
HANDICAPS: Final = (
    *((cause, Extent.RANK) for cause in Cause),
    *((Cause.SLOW_DEVICE, Extent.NODE), (Cause.SLOW_HOST, Extent.NODE), (Cause.SLOW_LINK, Extent.NODE)),
    *((Cause.SLOW_DEVICE, Extent.STEPS), (Cause.SLOW_DEVICE, Extent.GEMMS)),
    (Cause.ROTATING_JITTER, Extent.PAUSES),
)


def demo(folder: Path, _: int) -> Documents:
    """The recordings of the demo, and each compared with the one before."""
    before = None
    for name in sorted({*RECORDINGS} - {*SEVERAL}):
        path = folder / f"{name}.sqlite"
        unpack(path, name)
        found = diagnoser.analyze(path)
        yield f"{path.name}.xz", found.to_dict()
        if before is not None:
            yield f"{path.name}.xz compared", diagnoser.compare(before, found).to_dict()
        before = found


def small_runs(folder: Path, first: int) -> Documents:
    """Runs of a few kernels with every exception in them."""
    path = folder / "drawn.sqlite"
    for seed in range(first, first + EACH):
        run = draw(seed)
        path.unlink(missing_ok=True)
        write_export(path, run.recording)
        yield f"{seed}", _or_refused(diagnoser.analyze, path, **run.options)


def exceptions(folder: Path, first: int) -> Documents:
    """Small runs with exceptions that no program makes."""
    path = folder / "spoiled.sqlite"
    for seed in range(first, first + EACH):
        path.unlink(missing_ok=True)
        write_export(path, spoiled(seed))
        yield f"{seed}", _or_refused(diagnoser.analyze, path)


def exchanges(folder: Path, first: int) -> Documents:
    """Runs of what NCCL exchanges."""
    for seed in range(first, first + EACH):
        path = folder / f"{seed}.sqlite"
        draw_exchanges(seed, path)
        yield f"{seed}", _or_refused(diagnoser.analyze, path)


def facts_of_exchanges(folder: Path, first: int) -> Documents:
    """All that is measured of what NCCL exchanges, with names of threads or without."""
    autograd = {Recording().global_id(1000, AUTOGRAD): AUTOGRAD_THREAD}
    for seed in range(first, first + EACH):
        path = folder / f"{seed}.sqlite"
        draw_exchanges(seed, path)
        yield f"{seed}", facts(path, autograd if seed % 2 else {})


def facts_of_exceptions(folder: Path, first: int) -> Documents:
    """All that is measured of small runs with exceptions that no program makes."""
    path = folder / "spoiled.sqlite"
    for seed in range(first, first + EACH):
        path.unlink(missing_ok=True)
        write_export(path, spoiled(seed))
        yield f"{seed}", facts(path, {})


def facts_of_trainings(folder: Path, first: int) -> Documents:
    """All that is measured of small training runs."""
    autograd = {Recording().global_id(1000, AUTOGRAD): AUTOGRAD_THREAD}
    for seed in range(first, first + EACH):
        path = folder / f"{seed}.sqlite"
        named = draw_training(seed, path)
        yield f"{seed}", facts(path, autograd if named else {})


def facts_of_profiles(folder: Path, first: int) -> Documents:
    """All that is measured of small runs as PyTorch's profiler tells them."""
    for seed in range(first, first + EACH):
        path = folder / f"{seed}.json"
        draw_profile(seed, path)
        yield f"{seed}", facts(path, {})


def profiled(folder: Path, _: int) -> Documents:
    """Small runs as PyTorch's profiler writes them."""
    for seed in range(2000, 2000 + 2 * EACH):
        path, recording = folder / f"{seed}.json", draw(seed).recording
        for table, rows in recording.rows.items():
            recording.rows[table] = [row for row in rows if row.get("end")]
        path.write_text(as_profiler_json(recording), encoding="utf-8")
        yield f"{seed}", _or_refused(diagnoser.analyze, path)


def simulated(folder: Path, first: int) -> Documents:
    """Runs of drawn knobs under drawn views, with samples, cut within a step, and with a configuration."""
    for seed in range(first, first + FEW):
        view = replace(draw_view(seed), begin_frac=(0, 0.4, 1)[seed % 3], end_frac=(0, 0, 0.6, 1)[seed % 4])
        view = replace(view, metrics=seed % 3 == 0, memory=seed % 3 == 1, flushed=seed % 5 > 0)
        run = run_program(knobs := draw_knobs(seed), with_functions(program_of(knobs)))
        path, recording = folder / f"{seed}.sqlite", record(run, view)
        if seed % 2 and view.schema[0] == "3":
            sample(recording, run, SAMPLED_NS)
        write_export(path, recording, view.schema)
        config = CONFIGURED[seed % len(CONFIGURED)]
        asked = {"config": config, "about": {"gpu": "H100"}, "ask_megatron": False}
        yield f"{seed}", _or_refused(diagnoser.analyze, path, **asked)


def many_ranks(folder: Path, place: int) -> Documents:
    """One cause, by the first two simulators in turns."""
    cause, extent = HANDICAPS[place]
    found = second_truth(47, cause, extent=extent) if place % 2 else draw_run(31, cause, 4, extent=extent)
    files = write_ranks(found.done, folder, draw_clocks(found.run), CAPTURES[place % len(CAPTURES)])
    yield cause.value, _or_refused(diagnoser.analyze, [one.path for one in files])


def third_simulator(folder: Path, kind: Kind) -> Documents:
    """One handicap by the third."""
    found = third_truth(77, kind)
    files, mapped = write(found.world, found.done, draw_style(found.world, found.done), folder)
    yield kind.value, _or_refused(diagnoser.analyze, files, ranks=mapped, ask_megatron=False)


def sets_of_ranks(_: Path, first: int) -> Documents:
    """All that is judged of small sets of ranks."""
    return _judged_sets(draw_ranks, first)


def pipelines(_: Path, first: int) -> Documents:
    """All that is judged of small pipelines."""
    return _judged_sets(draw_pipeline, first)


def _judged_sets(drawn: Callable[[int], list[RankSummary]], first: int) -> Documents:
    """Of every second set, what is left of it as bytes."""
    for seed in range(first, first + MANY):
        ranks = drawn(seed)
        if seed % 2:
            ranks = [decode(encode(one), one.identity.trace) for one in ranks]
        try:
            refuse_mixed(put_together(ranks), [one.identity.trace for one in ranks], "analyze")
            judged = judge(ranks)
        except MoeDiagError as error:
            yield f"{seed}", {"refused": str(error)}
            continue
        run = run_of(judged, [one.identity.trace for one in ranks])
        yield (
            f"{seed}",
            {"run": run, "measured": judged.measured, "found": judged.found, "charged": judged.charged},
        )


def pairs_of_one_cause(_: Path, first: int) -> Documents:
    """Pairs whose new side is a cause the worse, a few causes."""
    for cause in CAUSES[first : first + FEW]:
        base, new = cause.change(Side(cause.knobs), STRENGTH)
        view = View(ranges=cause.ranges or "steps")
        documents = (diagnosed(simulate(side, seed, STEPS), view) for seed, side in enumerate((base, new)))
        yield cause.name, diagnoser.compare(*documents).to_dict()


def pairs_of_other_kinds(_: Path, __: int) -> Documents:
    """Pairs whose sides differ in what real ones do, of each kind the first."""
    for name, case in {one.name: one for one in reversed([*kinds(PAIRS_SEED)])}.items():
        seeds = zip(sides(case), case.noise_seeds, views(case), strict=True)
        base, new = (diagnosed(simulate(side, seed, case.step_count), view) for side, seed, view in seeds)
        yield name, diagnoser.compare(base, new).to_dict()


def pairs_of_small_runs(folder: Path, first: int) -> Documents:
    """Two small runs of which the new differs in something, every second pair with two configurations."""
    yield from _pairs(folder, first, both_sides)


def pairs_of_trainings(folder: Path, first: int) -> Documents:
    """Two small training runs, the new one computed in another way."""
    yield from _pairs(folder, first, draw_trainings)


def _pairs(folder: Path, first: int, sides_of: Callable[[int], tuple[Recording, Recording]]) -> Documents:
    for seed in range(first, first + EACH):
        documents = []
        for place, recording in enumerate(sides_of(seed)):
            path = folder / f"{seed} {place}.sqlite"
            write_export(path, recording)
            pair, side = PAIRS[seed % len(PAIRS)], ("base", "new" if seed % 4 else "base")[place]
            config = config_of(pair, side) if seed % 2 else None
            documents.append(_analysed(path, config))
        if None not in documents:
            yield f"{seed}", _or_refused(diagnoser.compare, *documents)


def _analysed(path: Path, config: Path | None) -> diagnoser.Diagnosis | None:
    try:
        return diagnoser.analyze(path, config=config, about={"gpu": "H100"}, ask_megatron=False)
    except MoeDiagError:
        return None


def drawn_configurations(_: Path, first: int) -> Documents:
    """Configurations drawn knob by knob, most of them illegal, and legal ones with what was measured."""
    for seed in range(first, first + EACH):
        for name, of in (("drawn", drawn_run), ("legal", random_run)):
            one = of(Random(seed))
            found = judge_observed(one.evidence, one.given, one.configured)
            yield (
                f"{name} {seed}",
                {
                    "plan": found.plan,
                    "walls": found.walls,
                    "verdict": found.verdict,
                    "choices": found.choices,
                    "combined": found.combined,
                    "files": found.from_files,
                },
            )


def altered_settings(_: Path, first: int) -> Documents:
    """What is read of configurations with a few lines changed, as they stand and in effect."""
    for seed in range(first, first + MANY):
        dice = Random(f"settings {seed}")
        path, core = CONFIGURATIONS[seed % len(CONFIGURATIONS)], dice.choice(CORES)
        try:
            read = configuration_of(altered(dice, path), path.name, core)
            yield f"{seed}", {"read": read, "effective": effective(read.settings, core)}
        except MoeDiagError as error:
            yield f"{seed}", {"refused": str(error)}


def altered_logs(folder: Path, first: int) -> Documents:
    """What is read of logs with a few lines changed."""
    for seed in range(first, first + MANY):
        path = folder / f"{seed}.log"
        path.write_text(altered(Random(f"log {seed}"), LOGS[seed % len(LOGS)], 8), encoding="utf-8")
        try:
            yield f"{seed}", {"read": read_log(path, known_lines())}
        except MoeDiagError as error:
            yield f"{seed}", {"refused": str(error)}


def altered_files(folder: Path, first: int) -> Documents:
    """What is said of a configuration with a few lines changed, with a log of any run now and then."""
    for seed in range(first, first + EACH):
        dice, path = Random(f"file {seed}"), CONFIGURATIONS[seed % len(CONFIGURATIONS)]
        config, log = folder / f"{seed}{path.suffix}", folder / f"{seed}.log"
        config.write_text(altered(dice, path), encoding="utf-8")
        log.write_text(altered(dice, dice.choice(LOGS), 8), encoding="utf-8")
        core = dice.choice(CORES)
        about = {"gpu": dice.choice(GPUS), **({"core_version": core} if core else {})}
        asked = {"about": about, "log": log if seed % 2 else None, "ask_megatron": False}
        yield f"{seed}", _or_refused(diagnoser.check_config, config, **asked)


def altered_pairs(folder: Path, first: int) -> Documents:
    """Two configurations with their logs of which the new ones have lines changed."""
    for seed in range(first, first + EACH):
        dice, pair = Random(f"files {seed}"), PAIRS[seed % len(PAIRS)]
        side = dice.choice(("base", "new"))
        config, log = config_of(pair, side), pair / f"{side}.log"
        new, new_log = folder / f"{seed}{config.suffix}", folder / f"{seed}.log"
        new.write_text(altered(dice, config), encoding="utf-8")
        new_log.write_text(altered(dice, log), encoding="utf-8")
        asked = {"base_log": pair / "base.log", "new_log": new_log, "about": truth(pair)["options"]}
        yield f"{seed}", _or_refused(diagnoser.compare_files, config_of(pair, "base"), new, **asked)


def configurations(_: Path, __: int) -> Documents:
    """Files of configurations, with logs and symptoms where they have any."""
    for case in (*CASES, *sorted((DATA / "field_cases").iterdir())):
        files = {one.name.partition(".")[0]: one for one in case.iterdir()} if case.is_dir() else {}
        if path := files.get("config") or files.get("run"):
            about = {"ask_megatron": False, "log": files.get("train"), "symptoms": files.get("symptoms")}
            yield case.name, _or_refused(diagnoser.check_config, path, **about)


def pairs_of_files(_: Path, __: int) -> Documents:
    """Two configurations with their logs."""
    for pair in PAIRS:
        logs = {"base_log": pair / "base.log", "new_log": pair / "new.log", "about": truth(pair)["options"]}
        found = diagnoser.compare_files(config_of(pair, "base"), config_of(pair, "new"), **logs)
        yield pair.name, found.to_dict()


def layouts(_: Path, __: int) -> Documents:
    """Layouts of published models."""
    for place, model in enumerate(PUBLISHED):
        gpu = ("H100", "GB200", "B200")[place % 3]
        yield model, diagnoser.plan(model, gpus=64 << place % 3, about={"gpu": gpu}).to_dict()


def _or_refused(ask: Callable[..., Any], *given: object, **asked: object) -> dict[str, Any]:
    try:
        document: dict[str, Any] = ask(*given, **asked).to_dict()
    except MoeDiagError as error:
        return {"refused": str(error)}
    return document
