"""The program that asks megatron-core: requests on stdin as JSON, one answer a line on stdout.

It needs no GPU, opens no connection and writes no file. The first line says which version answers,
or that none does. Run it by `diagnoser.megatron`.
"""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, replace
from typing import TextIO

from diagnoser.megatron.library import NEWEST, Library, build_layer
from diagnoser.megatron.raised import Raised, raised
from heuristics.rules.megatron.answer import (
    FLEX_PACKAGES,
    PACKAGES,
    PYTORCH,
    TRANSFORMER_ENGINE,
    Answer,
    Tier,
    accepted,
    failure,
    needs,
    no_such_knob,
    not_checked,
    refusal,
    rejected,
)
from heuristics.rules.megatron.request import Request
from traces.texts import Texts


def main() -> None:
    out = _stdout_of_our_own()
    requests = [Request(**plain) for plain in json.load(sys.stdin)]
    try:
        library = Library()
    except Exception as error:
        cause = raised(error)
        _write(out, {"absent": failure(cause.error, cause.message, cause.place, {})})
        return
    _write(out, {"version": library.version})
    for request in requests:
        for answer in answers(library, request):
            _write(out, asdict(answer))


def answers(library: Library, request: Request) -> Iterator[Answer]:
    """Of both tiers, each as soon as it is there."""

    def config() -> Texts:
        library.build(request)
        return ()

    def layer() -> Texts:
        return build_layer(library.torch, library.build(request), request.world_size)

    unknown = library.unknown(request)
    no_knob = no_such_knob(request, library.version, unknown) if unknown else None
    first = no_knob or _answer(library, request, "config", config)
    yield first
    if first.answer in ("ok", "needs"):
        # Which Transformer Engine there is was the other tier's matter.
        asked_of_layer = request if request.te_version else replace(request, te_version=NEWEST)
        yield _answer(library, asked_of_layer, "layer", layer)
    else:
        yield not_checked(
            "layer",
            "nothing was laid out, since the configuration itself was not built",
            library.version,
        )


def _answer(library: Library, request: Request, tier: Tier, build: Callable[[], Texts]) -> Answer:
    """Build it; where that fails, once more as where all is there that this host may lack.

    What is refused even then is no matter of what is installed here. What is accepted then needs
    those of the packages without which it is not.
    """

    def tried(there: Collection[str]) -> Texts | Raised:
        try:
            with library.assumed(there, request.te_version):
                return build()
        except Exception as error:
            return raised(error)

    # what the run is known to have, and what else this host may lack of it
    assumed = FLEX_PACKAGES if request.flex_package else ()
    told = () if request.te_version else (TRANSFORMER_ENGINE,)
    every = (*FLEX_PACKAGES, PYTORCH, PACKAGES, *told)
    lacking = tuple(package for package in every if package not in assumed)
    first = tried(assumed)
    if not isinstance(first, Raised):
        return accepted(request, tier, library.version, first)
    last = tried((*assumed, *lacking))
    if isinstance(last, Raised):
        by = last if first.refuses or last.refuses else first
        if by.refuses:
            words = refusal(by.error, by.message, by.statement, request.fields)
            return rejected(request, tier, library.version, words)
        text = failure(by.error, by.message, by.place, request.fields)
        return not_checked(tier, text, library.version)
    for package in lacking:
        others = tuple(name for name in lacking if name != package)
        if not isinstance(tried((*assumed, *others)), Raised):
            lacking = others
    return needs(request, tier, library.version, lacking)


def _stdout_of_our_own() -> TextIO:
    """Stdout, taken away from everybody else: what libraries print goes nowhere."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return out


def _write(out: TextIO, line: dict[str, object]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
