"""A run put together from summaries, as a page: who makes whom wait, and what is wrong with the set."""

from heuristics.result.result import Merged
from reports.content.analysis.run import Names, lines_of, part_of
from reports.content.blocks import Block, Code, Detail, Items, Page, Words, words
from traces.missing import known
from traces.spelling import counted


def page(merged: Merged) -> Page:
    """The page of `moe-diag merge FILES`."""
    run = merged.run

    def name(place: int) -> Words:
        """By its number where one is recorded, else by its recording."""
        rank = run.ranks[place].rank
        return words(Code(merged.traces[place]) if rank is None else f"rank {rank}")

    names = Names(name, name)
    size = known(run.world_size)
    seen = counted(run.ranks_seen, "rank") if size is None else f"{run.ranks_seen} of {counted(size, 'rank')}"
    facts = f"{seen}, {counted(run.collectives, 'collective')} in common, {counted(run.steps, 'step')}"
    blocks: list[Block] = [*lines_of(run, names, "steps unknown")]
    if run.ranks:
        blocks.append(part_of(run, names))
    if merged.warnings:
        blocks.append(Items(tuple(words(one) for one in merged.warnings), "Warnings"))
    return Page(words("run"), words(facts), tuple(blocks), Detail.FULL)
