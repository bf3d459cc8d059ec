"""How to record a run for a question, as a page: what to type, and what each option is for and costs."""

from collections.abc import Iterable, Iterator
from typing import Final

from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Command,
    Detail,
    Headline,
    Items,
    Page,
    Sentence,
    Tone,
    Words,
    words,
)
from traces.recording.line import PROGRAM, SCRIPT, Recording
from traces.recording.options import Option, Question, TrainedWith, asked

_NAMES: Final = {
    TrainedWith.MEGATRON_LM: "Megatron-LM",
    TrainedWith.BRIDGE: "Megatron-Bridge",
    TrainedWith.PYTORCH: "PyTorch",
}


def page(question: Question, framework: TrainedWith, how: Recording) -> Page:
    row = asked(question)
    head = Headline(question.upper(), words(f"{row.asks}."), Tone.PLAIN)
    reasons: tuple[Block, ...] = (
        Sentence(words(row.ranks), "Ranks", whole=True),
        *_titled(row.because, "Steps"),
        *_titled(row.beside, "Rates"),
        Items(tuple(map(_reason, how.options)), "Options of nsys"),
        Items(tuple(map(_reason, how.flags)), "In the training"),
    )
    blocks = (head, *commands(how), *_flags(how), *reasons, *_export(how.export))
    after = Command(words("Then:"), f"moe-diag doctor run_0.nsys-rep && {row.next}")
    facts = words(f"{_NAMES[framework]}; nothing is run")
    return Page(words(Code("moe-diag capture")), facts, (*blocks, after), Detail.FULL)


def _titled(text: str, title: str) -> tuple[Sentence, ...]:
    return (Sentence(words(text), title, whole=True),) if text else ()


def commands(how: Recording) -> Iterator[Block]:
    if how.script:
        yield Sentence(words("Save this as ", Code(SCRIPT), ":"))
        yield CodeBlock(how.script)
    yield Sentence(
        words("Start the training like this, with your own command in place of ", Code(PROGRAM), ":")
    )
    yield CodeBlock((how.start,))
    yield from _before(how.options, "nsys")


def _before(rows: Iterable[Option], product: str) -> Iterator[Sentence]:
    for one in rows:
        if one.since:
            instead = words("type ", Code(one.older), " for ") if one.older else words("leave out ")
            yield Sentence(words(f"Before {product} {one.since} ", *instead, Code(one.text), "."))


def _flags(how: Recording) -> Iterator[Block]:
    if how.code:
        yield Sentence(words("Mark the steps in the training loop:"))
        yield CodeBlock(how.code, "python")
    else:
        yield Sentence(words("Add to the arguments of the training:"))
        yield CodeBlock(tuple(one.text for one in how.flags))
        yield from _before(how.flags, "Megatron-Core")


def _reason(one: Option) -> Words:
    return words(Code(one.text), f": {one.why}. Cost: {one.cost}.")


def _export(rows: Iterable[Option]) -> Iterator[Block]:
    for one in rows:
        yield Sentence(words(f"Export with the payloads of NCCL's calls, by nsys {one.since} or newer:"))
        yield CodeBlock((one.text,))
        yield Sentence(words(f"It {one.why}. Cost: {one.cost}."))
