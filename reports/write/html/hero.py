"""The top of an analysis: what can be saved at most, how sure that is, and the walls as cards."""

from dataclasses import dataclass
from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.scale import scale_of, telling_rank
from reports.content.blocks import Quantity, Row, Table, Tone, Words
from reports.write.html.looks import length
from traces.missing import known
from traces.spelling import saving

_STATES: Final = {Tone.BAD: "Bottleneck", Tone.PLAIN: "No bottleneck"}
_SEVERITY: Final = {Tone.BAD: "notable", Tone.PLAIN: "clear", Tone.MUTED: "unmeasurable"}


@dataclass(frozen=True, slots=True)
class Hero:
    """The large figure, what it is of, and the confidence; empty where it is not known."""

    most: str
    of: str
    confidence: str


@dataclass(frozen=True, slots=True)
class Card:
    """One wall: `severity` is its class in the style sheet, `width` its bar in percent."""

    id: str
    name: Words
    most: str
    amount: str
    state: str
    detail: Words
    severity: str
    width: str


def hero_of(result: Result) -> Hero:
    """Of the verdict's wall, else of the largest; no figure where what is not known could be larger."""
    costs = {wall.id: cost for wall in result.walls if (cost := known(wall.cost_frac)) is not None}
    decided, confidence = known(result.verdict.wall), known(result.verdict.confidence) or ""
    all_judged = len(costs) == len(result.walls)
    most = costs[decided] if decided in costs else max(costs.values(), default=0) if all_judged else 0
    whole = scale_of(telling_rank(result)).whole
    whole += " without start-up" if result.verdict.startup_ns else ""
    return (
        Hero(saving(None, most), f"of the {whole} could be saved", confidence)
        if most
        else Hero("", "", confidence)
    )


def cards_of(table: Table, worst: str | None) -> list[Card]:
    """Each row as a card; `worst`: the wall of the verdict."""
    return [_card(table, row, row.id == worst) for row in table.rows]


def _card(table: Table, row: Row, is_worst: bool) -> Card:
    name, *others = row.cells
    shares = [cell for cell in others if isinstance(cell, Quantity) and cell.share is not None]
    amounts = [
        f"{cell.text} {column.title}"
        for column, cell in zip(table.columns[1:], others, strict=True)
        if isinstance(cell, Quantity) and cell.share is None and cell.text
    ]
    detail = next((cell for cell in others if not isinstance(cell, Quantity)), ())
    severity = "severe" if is_worst and row.tone is Tone.BAD else _SEVERITY.get(row.tone, "clear")
    return Card(
        id=row.id,
        name=() if isinstance(name, Quantity) else name,
        most=shares[0].text if shares else "unknown",
        amount=", ".join(amounts),
        state=_STATES.get(row.tone, ""),
        detail=detail,
        severity=severity,
        width=length(shares[0].share or 0) if shares else length(0),
    )
