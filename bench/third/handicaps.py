"""What holds a run up: a handicap changes numbers that were drawn already, and none changes a draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from random import Random
from typing import Final

from bench.third.engine import Rates, Resource
from bench.third.program import Do, Operation, Program, Routing
from bench.third.world import Group, World


class Kind(Enum):
    """Handicaps, by the name that a run is given."""

    HEALTHY = "healthy"
    SLOW_GPU = "slow_gpu"
    SLOW_GEMM = "slow_gemm"
    THROTTLE = "throttle"
    SLOW_NODE = "slow_node"
    SLOW_HOST = "slow_host"
    SLOW_HOST_NODE = "slow_host_node"
    SLOW_NIC = "slow_nic"
    SLOW_PAIR = "slow_pair"
    SLOW_RAIL = "slow_rail"
    HOT = "hot"
    WANDER = "wander"
    LOADER = "loader"
    GC = "gc"
    JITTER = "jitter"
    STAGE_HEAVY = "stage_heavy"
    TWO = "two"


CAUSES: Final = {
    Kind.HEALTHY: "none",
    Kind.SLOW_GPU: "slow_device",
    Kind.SLOW_GEMM: "slow_device",
    Kind.THROTTLE: "slow_device",
    Kind.SLOW_NODE: "slow_device",
    Kind.SLOW_HOST: "slow_host",
    Kind.SLOW_HOST_NODE: "slow_host",
    Kind.SLOW_NIC: "slow_link",
    Kind.SLOW_PAIR: "slow_link",
    Kind.SLOW_RAIL: "slow_link",
    Kind.HOT: "routing_imbalance",
    Kind.WANDER: "routing_imbalance",
    Kind.LOADER: "data_loader",
    Kind.GC: "rotating_jitter",
    Kind.JITTER: "rotating_jitter",
    Kind.STAGE_HEAVY: "pipeline_imbalance",
    Kind.TWO: "data_loader",
}
_GPU: Final = (Kind.SLOW_GPU, Kind.SLOW_GEMM, Kind.THROTTLE, Kind.SLOW_NODE)
_GEMMS: Final = ("dense", "experts", "router", "head")
_STRENGTHS: Final = {
    Kind.SLOW_GPU: (1.12, 1.45),
    Kind.SLOW_GEMM: (1.12, 1.4),
    Kind.THROTTLE: (1.25, 1.6),
    Kind.SLOW_NODE: (1.12, 1.35),
    Kind.SLOW_HOST: (2.5, 7.0),
    Kind.SLOW_HOST_NODE: (2.5, 7.0),
    Kind.SLOW_NIC: (2.0, 5.0),
    Kind.SLOW_PAIR: (2.5, 5.0),
    Kind.SLOW_RAIL: (2.0, 4.0),
    Kind.HOT: (1.5, 2.4),
    Kind.WANDER: (1.3, 2.0),
    Kind.LOADER: (1500.0, 4500.0),
    Kind.GC: (900.0, 2500.0),
    Kind.JITTER: (200.0, 420.0),
}
"""Times that a handicap multiplies by; us that it adds."""
_GROWTH: Final = 1.4
_NODES: Final = (Kind.SLOW_NODE, Kind.SLOW_HOST_NODE, Kind.SLOW_NIC, Kind.SLOW_PAIR, Kind.SLOW_RAIL)


@dataclass(frozen=True)
class Hand:
    """One handicap. `ranks` it hits, `accept`: ranks that a right answer may name; `whole`: all of them.

    `ranks` of a slow pair are nodes. `part`: of all pauses those that come; `on_gpu`: kernels pause.
    """

    kind: Kind
    ranks: tuple[int, ...] = ()
    accept: tuple[int, ...] = ()
    whole: bool = False
    strength: float = 1.0
    part: float = 0.0
    steps: tuple[int, ...] = ()
    stage: int = -1
    on_gpu: bool = False

    def stronger(self) -> Hand:
        """More of the same. A part of times is that of pauses, else what is above 1 grows."""
        if self.kind in (Kind.GC, Kind.JITTER):
            return replace(self, part=min(0.9, self.part * _GROWTH))
        if self.strength > 100:
            return replace(self, strength=self.strength * _GROWTH)
        return replace(self, strength=1 + (self.strength - 1) * _GROWTH)


def least_sizes(kind: Kind) -> tuple[int, int]:
    """How many stages and nodes a handicap needs."""
    nodes = 3 if kind is Kind.SLOW_PAIR else 2  # of two, nothing is beside their pair
    return (2 if kind is Kind.STAGE_HEAVY else 1), (nodes if kind in _NODES else 1)


def draw_hands(world: World, kind: Kind) -> tuple[Hand, ...]:
    """The handicaps of a run of this kind."""
    if kind is Kind.TWO:
        return tuple(_hand(world, one) for one in (Kind.LOADER, Kind.SLOW_GPU))
    return () if kind is Kind.HEALTHY else (_hand(world, kind),)


def _hand(world: World, kind: Kind) -> Hand:
    draw, layout = Random(f"third hand {world.seed} {kind.value}"), world.layout
    everybody = tuple(range(layout.size))
    rank = draw.choice(everybody)
    node = tuple(one for one in everybody if layout.node(one) == layout.node(rank))
    strength = draw.uniform(*_STRENGTHS.get(kind, (1.0, 1.0)))
    part = {Kind.GC: draw.uniform(0.08, 0.2), Kind.JITTER: draw.uniform(0.1, 0.25)}.get(kind, 0.0)
    plain = Hand(kind, (rank,), (rank,), False, strength, part)
    match kind:
        case Kind.SLOW_NODE | Kind.SLOW_HOST_NODE:
            return replace(plain, ranks=node, accept=node, whole=True)
        case Kind.SLOW_NIC:
            return replace(plain, accept=_with(world, rank))
        case Kind.SLOW_PAIR:
            other = draw.choice([one for one in everybody if layout.node(one) != layout.node(rank)])
            nodes = (layout.node(rank), layout.node(other))
            ends = (one for one in everybody if layout.node(one) in nodes)
            return replace(plain, ranks=nodes, accept=_with(world, *ends))
        case Kind.SLOW_RAIL:
            rail = tuple(one for one in everybody if one % layout.per_node == rank % layout.per_node)
            return replace(plain, ranks=rail, accept=_with(world, *rail))
        case Kind.HOT:
            same = tuple(one for one in everybody if one % layout.expert == rank % layout.expert)
            return replace(plain, ranks=same, accept=same)
        case Kind.THROTTLE:
            count = draw.randint(max(1, world.steps // 2), max(1, world.steps - 1))
            return replace(plain, steps=tuple(sorted(draw.sample(range(1, world.steps + 1), count))))
        case Kind.WANDER | Kind.GC | Kind.JITTER:
            ahead = kind is Kind.JITTER and (world.dispatcher != "alltoall" or draw.random() < 0.5)
            return replace(plain, ranks=everybody, accept=(), on_gpu=ahead)
        case Kind.STAGE_HEAVY:
            stage = draw.randrange(layout.pipeline)
            ranks = tuple(one for one in everybody if layout.stage(one) == stage)
            return replace(plain, ranks=ranks, accept=ranks, whole=True, stage=stage)
    return plain


def _with(world: World, *ranks: int) -> tuple[int, ...]:
    """Those that share a slow way with these: in one group over nodes they cannot be told apart."""
    layout, found = world.layout, set(ranks)
    for rank in ranks:
        for group in (Group.EXPERT_DATA, Group.EXPERT, Group.PIPELINE):
            members = layout.group(group, rank)
            if len({layout.node(one) for one in members}) > 1 and len(members) < layout.size:
                found |= set(members)
    return tuple(sorted(found))


class HandedRouting(Routing):
    """Routing with a hot place of each group, or one that wanders."""

    def __init__(self, world: World, hands: Sequence[Hand]) -> None:
        super().__init__(world)
        self._hands, self._expert = hands, world.layout.expert

    def changed(self, raw: list[float], draw: Random) -> list[float]:
        somebody = draw.randrange(len(raw))
        for hand in self._hands:
            if hand.kind in (Kind.HOT, Kind.WANDER):
                hot = somebody if hand.kind is Kind.WANDER else hand.ranks[0] % self._expert
                raw[hot] *= hand.strength
        return raw


def programs(world: World, hands: Sequence[Hand]) -> list[list[Operation]]:
    """What each rank does, handicaps written in."""
    routing = HandedRouting(world, hands)
    written = []
    for rank in range(world.layout.size):
        stage, layers = world.layout.stage(rank), world.layers
        layers += sum(hand.stage == stage for hand in hands)
        operations = Program(world, rank, range(layers), routing).operations
        for one, then in pairwise([*operations, operations[-1]]):
            _change(world, hands, rank, one)
            if one.where == "stop" and any(hand.on_gpu for hand in hands):
                then.work_us, one.gap_us = then.work_us + one.gap_us, 0.0
        written.append(operations)
    return written


def _change(world: World, hands: Sequence[Hand], rank: int, one: Operation) -> None:
    if one.do is Do.PAUSE and one.where == "loader":
        one.gap_us += sum(hand.strength for hand in hands if hand.kind is Kind.LOADER and rank in hand.ranks)
    elif one.do is Do.PAUSE:
        kind, usual_us = (Kind.GC, world.pause_us) if one.where == "gc" else (Kind.JITTER, 1.0)
        times = one.gap_us / usual_us
        usual = one.gap_us if kind is Kind.GC and one.work_us < world.pause_p else 0.0
        added = sum(hand.strength * times for hand in hands if hand.kind is kind and one.work_us < hand.part)
        one.gap_us = max(usual, added)
    else:
        for hand in hands:
            if hand.kind in (Kind.SLOW_HOST, Kind.SLOW_HOST_NODE) and rank in hand.ranks:
                one.gap_us, one.call_us = one.gap_us * hand.strength, one.call_us * hand.strength


def work_us(hands: Sequence[Hand], rank: int, one: Operation) -> float:
    """How long a kernel of a rank takes."""
    us = one.work_us
    for hand in hands:
        hit = hand.kind in _GPU and rank in hand.ranks and (not hand.steps or one.step in hand.steps)
        if hit and (hand.kind is not Kind.SLOW_GEMM or one.where in _GEMMS):
            us *= hand.strength
    return us


def rates(world: World, hands: Sequence[Hand]) -> Rates:
    """How fast everything moves."""
    slow = {
        rank: hand.strength
        for hand in hands
        for rank in hand.ranks
        if hand.kind in (Kind.SLOW_NIC, Kind.SLOW_RAIL)
    }
    pairs = {frozenset(hand.ranks): hand.strength for hand in hands if hand.kind is Kind.SLOW_PAIR}
    node = world.layout.node

    def of(resource: Resource) -> float:
        name, rank = resource
        return world.nvlink if name.startswith("nvlink") else world.nic / slow.get(rank, 1.0)

    def times(one: int, other: int) -> float:
        return pairs.get(frozenset((node(one), node(other))), 1.0) if pairs else 1.0

    return Rates(of, times)
