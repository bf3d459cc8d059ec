"""No text of a stranger costs a pattern more than it is long, and no pattern escapes this test.

Every pattern that a module compiles, a table holds or a function makes is run over texts made of its own
parse, at two lengths.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import _lru_cache_wrapper, cache
from math import inf
from time import process_time
from types import FrameType, ModuleType
from typing import Any

import pytest
from msgspec import Struct

from reports.content.analysis.in_calls import kind_of_call
from reports.content.explain.page import explain_page
from reports.redaction import public, public_name
from tests.hostile.pumped import Pump, endless_numbers, pumps
from tests.read_back.source import MODULES, imported, name_of, parsed
from traces import patterns
from traces.errors import UsageError
from traces.formats.export_cache import _first_error
from traces.names.file_names import told_name
from traces.names.gpus import product_named
from traces.names.kernels import classify_kernel
from traces.names.ranges import cause_of_range, is_optimizer_name, is_step_name
from traces.patterns import Pattern, compiled, starred

HOME = "traces.patterns"
ENGINES = {"re", "re2", "fnmatch", "sre_compile", "sre_constants", "sre_parse", "regex"}
OWNERS = (
    "traces.names", "traces.settings", "traces.training_log", "traces", "heuristics", "reports", "diagnoser",
)  # fmt: skip
IN_NO_MODULE = "tables and functions"
COMPILING = {"compiled", "compiled_rows", "of_bytes", "at_places", "Pattern"}
AnyPattern = Pattern | re.Pattern[bytes] | re.Pattern[str]
SHORT, LONG = 3_000, 12_000
FIRST_S, EACH_S = 0.004, 4e-6
"""What a text that long takes, and each place at which a pattern is found; more is measured again."""
GROWTH = 8.0
"""Four times the length: 4 where time is linear, 16 where it is quadratic."""
ENDLESS_S = 20.0

MADE_OF_DATA: Mapping[str, Callable[[], object] | None] = {
    "reports.content.analysis.in_calls:kind_of_call": lambda: kind_of_call("MPI_Recv"),
    "traces.names.gpus:_words_of": lambda: product_named("NVIDIA H100 80GB HBM3"),
    "traces.patterns:compiled": None,
    "traces.patterns:compiled_rows": None,
    "traces.patterns:starred": lambda: [starred(text) for text in ("moe_*", "*a*b*", "*")],
    "traces.training_log.blocks:_pattern": None,  # a table, which is read below
    "traces.toml_tables:_pattern": None,  # the tables, which are read below
    "reports.write.danger:__init__": None,  # called while its module is imported
    "traces.steps.selection:_parse_nvtx": None,  # what the user types
    "traces.names.file_names:_machine": lambda: told_name("node042.sqlite"),
    "reports.redaction:public_name": lambda: public_name("node042", True, ("node042",)),
}
"""Functions that compile a text which does not stand there, and what has them do so."""


def calls(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Each call that compiles, with the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef) else within or "lambda"
        is_function = isinstance(node, ast.FunctionDef | ast.Lambda)
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id in COMPILING:
            yield within, node
        yield from calls(node, inside if is_function else within)


def test_one_module_alone_knows_regular_expressions() -> None:
    found = {name_of(path) for path in MODULES if ENGINES & {name.split(".")[0] for name in imported(path)}}
    assert found == {HOME}


def test_a_function_compiles_only_what_stands_there_or_what_is_named_here() -> None:
    made = set()
    for path in MODULES:
        for within, call in calls(parsed(path)):
            is_constant = all(isinstance(one, ast.Constant) for one in call.args)
            if within and not is_constant:
                made.add(f"{name_of(path)}:{within}")
    assert made == {*MADE_OF_DATA}


@cache
def modules() -> tuple[ModuleType, ...]:
    return tuple(
        importlib.import_module(name_of(path))
        for path in MODULES
        if path.name != "__main__.py" and "agent" not in path.parts
    )


@cache
def tables() -> tuple[object, ...]:
    """What every function of the product gives that is asked once and needs nothing, all tables among it."""
    found: dict[Callable[[], object], None] = {
        one: None
        for module in modules()
        for one in vars(module).values()
        if isinstance(one, _lru_cache_wrapper) and not inspect.signature(one).parameters
    }
    return tuple(one() for one in found)


def held(value: object, seen: set[int]) -> Iterator[object]:
    """A value and all that it holds."""
    if id(value) in seen or isinstance(value, str | int | float | ModuleType):
        return
    seen.add(id(value))
    yield value
    parts: list[object] = []
    if isinstance(value, Mapping):
        parts = [*value.values()]
    elif isinstance(value, tuple | list | frozenset | set):
        parts = [*value]
    elif isinstance(value, Struct):
        parts = [getattr(value, name) for name in value.__struct_fields__]
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, one.name, None) for one in fields(value)]
    for part in parts:
        yield from held(part, seen)


@cache
def every() -> Mapping[str, list[AnyPattern]]:
    """All patterns, by the packages whose modules hold them."""
    found: dict[str, list[AnyPattern]] = {owner: [] for owner in (*OWNERS, IN_NO_MODULE)}
    for make in filter(None, MADE_OF_DATA.values()):
        make()
    tables()
    for path in MODULES:
        for _, call in calls(parsed(path)):
            is_compiled = isinstance(call.func, ast.Name) and call.func.id == "compiled"
            if is_compiled and isinstance(text := getattr(call.args[0], "value", None), str):
                compiled(text)
    known: set[object] = set()
    for module in modules():
        owner = next((one for one in OWNERS if module.__name__.startswith(one)), IN_NO_MODULE)
        for one in held(dict(vars(module)), set()) if module is not patterns else ():
            if isinstance(one, Pattern | re.Pattern) and one not in known:
                known.add(one)
                found[owner].append(one)
    apart = (*patterns._OF_BYTES.values(), *patterns._AT_PLACES.values())
    left = {*patterns._COMPILED.values(), *apart} - known
    return {**found, IN_NO_MODULE: [*left]}  # type: ignore[list-item]


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """An error where it takes longer: a pattern that does not end fails the test and does not hold it up."""

    def end(_: int, __: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def walked(pattern: re.Pattern[str], text: str) -> int:
    """At how many places of a text that is read with it from place to place it is found."""
    at = count = 0
    while at < len(text):
        found = pattern.match(text, at)
        at = max(at + 1, found.end() if found else 0)
        count += found is not None
    return count


def asked(pattern: AnyPattern, text: str) -> tuple[float, int]:
    """CPU time in s of all that is asked of a pattern, and at how many places it is found."""
    said: Any = text if isinstance(pattern, Pattern) else text.encode()
    begun = process_time()
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        count = walked(pattern, text)
        return process_time() - begun, count
    pattern.search(said)
    pattern.match(said)
    pattern.fullmatch(said)
    count = sum(1 for _ in pattern.finditer(said))
    return process_time() - begun, count


def growth(pattern: AnyPattern, pump: Pump) -> float:
    """How many times as long four times the text takes; 0 where it takes next to nothing."""
    try:
        with ended_after(ENDLESS_S):
            spent_s, count = asked(pattern, pump.of(LONG))
            if spent_s < FIRST_S + EACH_S * count:
                return 0.0
            short_s, long_s = least_s(pattern, pump, SHORT), least_s(pattern, pump, LONG)
            times = 0.0 if long_s < FIRST_S else long_s / short_s
            # a machine that leaves the fast way of the engine at a length does so once
            return min(times, least_s(pattern, pump, 4 * LONG) / long_s) if times > GROWTH else times
    except TimeoutError:
        return inf


def least_s(pattern: AnyPattern, pump: Pump, length: int) -> float:
    return min(asked(pattern, pump.of(length))[0] for _ in range(5))


def too_long(pattern: AnyPattern) -> Iterator[str]:
    """The texts of which four times as much takes a pattern far longer than four times as long."""
    text = pattern.text if isinstance(pattern, Pattern) else pattern.pattern
    text = text.decode("latin-1") if isinstance(text, bytes) else text
    for pump in pumps(text):
        if (times := growth(pattern, pump)) > GROWTH:
            yield f"{text!r} takes {times:.1f} times as long on four times as much of {pump}"


def test_no_pattern_takes_digits_without_an_end() -> None:
    texts = {one.text for several in every().values() for one in several if isinstance(one, Pattern)}
    assert {text for text in texts if endless_numbers(text)} == set()
    assert endless_numbers(r"step (\d+)")
    assert endless_numbers(r"(?P<rank>(?:[0-9]+)|none)")
    assert not endless_numbers(r"\d+ (\d{1,9})")


@pytest.mark.parametrize("owner", [*OWNERS, IN_NO_MODULE])
def test_no_pattern_takes_longer_than_its_text_is_long(owner: str) -> None:
    assert every()[owner]
    assert [line for pattern in every()[owner] for line in too_long(pattern)] == []


@pytest.mark.parametrize(
    "planted",
    [
        Pattern("x.*y|x"),  # each place is found only once the whole rest was looked at
        re.compile(rb"\s+$"),
        re.compile(rb"^(?:_\w+)*!"),
        re.compile(r"[^x]+x"),
    ],
)
def test_the_test_of_patterns_can_fail(planted: AnyPattern, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.whole.test_linear_patterns.ENDLESS_S", 1.0)
    assert next(too_long(planted), None) is not None


def no_topic(word: str) -> None:
    with pytest.raises(UsageError):
        explain_page(word)


@pytest.mark.parametrize("told", [
    lambda: classify_kernel(f"broadcast{'_' * 200_000}!"), lambda: classify_kernel("xmma" * 50_000),
    lambda: is_step_name(" " * 700_000), lambda: is_optimizer_name("_" * 700_000),
    lambda: cause_of_range(f"load{'_' * 700_000}"), lambda: public("a_" * 200_000, redact=True),
    lambda: _first_error("'/" * 200_000), lambda: no_topic("[" * 100_000),
])  # fmt: skip
def test_what_once_took_minutes_is_told_at_once(told: Callable[[], object]) -> None:
    begun = process_time()
    with ended_after(ENDLESS_S):
        told()
    assert process_time() - begun < 1.0
