"""How to record a run for a question, as a page: what to type, and what each option is for and
costs.
"""

from collections.abc import Iterable

from reports.content.blocks import (
    Block,
    Blocks,
    Code,
    CodeBlock,
    Command,
    Headline,
    Items,
    Sentence,
    Tone,
    Words,
    words,
)
from reports.content.names import statement
from reports.content.page import Detail, Page
from reports.measures import words_of
from reports.rows import each
from traces.recording.line import PROGRAM, SCRIPT, Recording
from traces.recording.options import Option, Question, TrainedWith, asked


def page(question: Question, framework: TrainedWith, how: Recording) -> Page:
    row = asked(question)
    reasons = list[Block]()
    for label, text in (("Ranks", row.ranks), ("Steps", row.because), ("Rates", row.beside)):
        if text:
            reasons.append(statement(text, label, whole=True))
    reasons.append(Items(tuple(map(_reason, how.options)), "Options of nsys"))
    reasons.append(Items(tuple(map(_reason, how.flags)), "In the training"))
    for export in how.export:
        payloads = f"Export with the payloads of NCCL's calls, by nsys {export.since} or newer:"
        cost = statement(f"It {export.why}. Cost: {export.cost}.")
        reasons += (statement(payloads), CodeBlock((export.text,)), cost)
    blocks = [Headline(question.upper(), words(f"{row.asks}."), Tone.PLAIN), *commands(how)]
    if how.code:
        blocks += (statement("Mark the steps in the training loop:"), CodeBlock(how.code, "python"))
    else:
        lines = CodeBlock(tuple(each(how.flags, "text")))
        blocks += (statement("Add to the arguments of the training:"), lines)
        blocks += _before(how.flags, "Megatron-Core")
    blocks += (*reasons, Command("Then:", f"moe-diag doctor run_0.nsys-rep && {row.next}"))
    facts = words(f"{words_of('trained_with')[framework]}; nothing is run")
    return Page(words(Code("moe-diag capture")), facts, tuple(blocks), Detail.FULL)


def commands(how: Recording) -> Blocks:
    if how.script:
        yield Sentence(words("Save this as ", Code(SCRIPT), ":"))
        yield CodeBlock(how.script)
    yield Sentence(
        words(
            "Start the training like this, with your own command in place of ", Code(PROGRAM), ":"
        )
    )
    yield CodeBlock((how.start,))
    yield from _before(how.options, "nsys")


def _before(rows: Iterable[Option], product: str) -> Blocks:
    for option in rows:
        if option.since:
            instead = words("leave out ")
            if option.older:
                instead = words("type ", Code(option.older), " for ")
            yield Sentence(
                words(f"Before {product} {option.since} ", *instead, Code(option.text), ".")
            )


def _reason(option: Option) -> Words:
    return words(Code(option.text), f": {option.why}. Cost: {option.cost}.")
