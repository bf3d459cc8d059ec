"""The program that asks megatron-core: requests on stdin as JSON, one answer a line on stdout.

It needs no GPU, opens no connection and writes no file. The first line says which version answers, or that
none does. Run it by `diagnoser.megatron`.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Final, TextIO

from diagnoser.megatron.library import NEWEST_TE, Library, build_layer
from heuristics.rules.megatron.answer import (
    FLEX_PACKAGES,
    TRANSFORMER_ENGINE,
    Answer,
    Tier,
    accepted,
    host_lacks,
    needs,
    no_such_knob,
    not_checked,
    rejected,
    words,
)
from heuristics.rules.megatron.request import Request

_UNBUILT: Final = "nothing was laid out, since the configuration itself is not accepted"


def main() -> None:
    out = _stdout_of_our_own()
    requests = [Request(**plain) for plain in json.load(sys.stdin)]
    try:
        library = Library()
    except Exception as error:
        _write(out, {"absent": type(error).__name__})
        return
    _write(out, {"version": library.version})
    for request in requests:
        for answer in answers(library, request):
            _write(out, asdict(answer))


def answers(library: Library, request: Request) -> Iterator[Answer]:
    """Of both tiers, each as soon as it is there."""

    def config() -> tuple[str, ...]:
        library.build(request)
        return ()

    def layer() -> tuple[str, ...]:
        return build_layer(library.torch, library.build(request), request.world_size)

    unknown = library.unknown(request)
    no_knob = no_such_knob(request, library.version, unknown) if unknown else None
    first = no_knob or _answer(library, request, "config", config)
    yield first
    if first.answer in ("ok", "needs"):
        # Which Transformer Engine there is was the other tier's matter.
        told = request if request.te_version else replace(request, te_version=NEWEST_TE)
        yield _answer(library, told, "layer", layer)
    else:
        yield not_checked("layer", _UNBUILT, library.version)


def _answer(library: Library, request: Request, tier: Tier, build: Callable[[], tuple[str, ...]]) -> Answer:
    """Build it; where this host lacks something, with a stand-in, so that a rejection still shows.

    What is rejected even with the newest Transformer Engine is no matter of what is installed here.
    """
    version, te_version, flex = library.version, request.te_version, request.flex_package
    lacked: list[str] = []
    while True:
        try:
            with library.assumed(te_version, flex_package=flex):
                without = build()
        except Exception as error:
            kind, message = type(error).__name__, str(error)
            statement = traceback.extract_tb(error.__traceback__)[-1].line or ""
            lacking = host_lacks(kind, message, te_version is not None and library.assumes_te)
            if lacking is None:
                said = words(kind, message, statement, request.fields)
                return rejected(request, tier, version, said)
        else:
            if lacked:
                return needs(request, tier, version, lacked, rest_fits=True)
            return accepted(request, tier, version, without)
        if lacking == TRANSFORMER_ENGINE and te_version is None:
            te_version = NEWEST_TE
        elif lacking in FLEX_PACKAGES and not flex:
            flex = True
        else:
            return needs(request, tier, version, [lacking], rest_fits=False)
        lacked.append(lacking)


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
