"""Rules by which NVIDIA's guides choose dispatcher, CUDA graphs, precision and recompute."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from heuristics.guides import dispatcher_rules, graph_rules
from heuristics.guides.dispatcher_rules import DispatcherRule
from heuristics.guides.graph_rules import GraphRule
from heuristics.guides.precision import RULES as PRECISION
from heuristics.guides.precision import PrecisionRule
from heuristics.guides.recompute import RULES as RECOMPUTE
from heuristics.guides.recompute import PressureRule
from heuristics.run.given import Guidance
from reports.content.blocks import Block
from reports.content.explain.topic import Topic, listed, said
from reports.content.wording import ended


def guide_topics() -> Iterator[Topic]:
    """Every rule of the four choosers, of both editions of the guides."""
    for edition, rules in dispatcher_rules.RULES.items():
        for one in rules:
            yield Topic(one.id, f"guide on dispatchers, {edition}", partial(_dispatcher, one, edition))
    for edition, graphs in graph_rules.RULES.items():
        for rule in graphs:
            yield Topic(rule.id, f"guide on CUDA graphs, {edition}", partial(_graphs, rule))
    for recipe in PRECISION:
        yield Topic(recipe.name, "guide on precision", partial(_precision, recipe))
    for row in RECOMPUTE:
        yield Topic(row.name, "guide on recompute", partial(_recompute, row))


def _dispatcher(rule: DispatcherRule, edition: Guidance) -> Iterator[Block]:
    yield from said(ended(rule.note))
    yield from said(rule.first or f"none: measure {' against '.join(rule.candidates)}", "Chooses")
    yield from listed("With it", rule.extras)
    yield from said(dispatcher_rules.SKILLS[edition], "Source")


def _graphs(rule: GraphRule) -> Iterator[Block]:
    yield from said(ended(rule.note))
    yield from said(f"{rule.impl} {' '.join(rule.modules)}".strip(), "Chooses")
    yield from said(" ".join(rule.then), "After a test it may add")
    yield from said(" ".join(rule.never), "Never")
    yield from said(rule.source, "Source")


def _precision(rule: PrecisionRule) -> Iterator[Block]:
    yield from said(" or ".join(rule.main), "Chooses, edition main-2026-08")
    yield from said(" or ".join(rule.seed), "Chooses, edition seed")


def _recompute(rule: PressureRule) -> Iterator[Block]:
    yield from said(f"{rule.granularity} {' '.join(rule.start)}".strip(), "Chooses")
    yield from said(" ".join(rule.then), "Then, one at a time until it fits")
