"""MoE layers as lines of letters: what stands where in a pass, and what each kernel is then part of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.measure.moe.layers import _counted, _numbers, _with_recomputed
from traces.measure.moe.modules import Membership, members_of
from traces.measure.moe.passes import Evidence, Lanes, Part, Passes, _part, _phase_named, lanes_of, passes_of
from traces.names.kernels import KernelClass
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import OPERATIONS, PHASES, UNTOLD

LETTERS = {
    **{".": Part.NONE, "n": Part.BORDER, "r": Part.ROUTER, "m": Part.MAP, "c": Part.CONTROL},
    **{"k": Part.COUNTS, "D": Part.PAYLOAD, "C": Part.PAYLOAD, "A": Part.PAYLOAD, "x": Part.REORDER},
    **{"u": Part.REORDER, "e": Part.GROUPED, "g": Part.GEMM, "a": Part.ACTIVATION, "q": Part.CAST},
    **{"y": Part.GATHER, "o": Part.OTHER},
}
"""`D` tokens leave, `C` they come back, `A` one of both; `u` brings tokens back into their own order."""


def told(line: str, marks: str = "") -> tuple[Passes, Membership]:
    """Of lanes parted by `|`, the second of them autograd's. Activities are numbered from the end.

    Marks: `f`, `b` names of forward and backward; `F`, `B` the same resolved of traffic; `~` runs again.
    """
    lane, letters = np.cumsum([*map("|".__eq__, line)]), np.array([*line])
    place = np.flatnonzero(letters != "|")
    mark = np.array([*marks.ljust(len(line))])[place][::-1]
    lane, letters = lane[place], letters[place]
    parts = np.array([LETTERS[one] for one in letters])
    lanes = Lanes(np.arange(len(place))[::-1], lane, parts, letters == "u")
    ways = [OPERATIONS.index(way) for way in ("dispatch", "combine")]
    at = np.flatnonzero(parts[::-1] == Part.PAYLOAD)
    operation = np.select([letters == "D", letters == "C"], ways, -1)[::-1][at]
    resolution: Any = SimpleNamespace(index=at, operation=operation)
    phase, resolved = (np.select([mark == one, mark == other], [0, 1], -1) for one, other in ("fb", "FB"))
    evidence = Evidence((lane == 1)[::-1], mark == "~", phase, resolved)
    passes = passes_of(lanes, resolution, evidence)
    return passes, members_of(lanes, passes, evidence)


def said(line: str, codes: np.ndarray[Any, Any], letters: str) -> str:
    """A letter of each activity, in the order of the line."""
    found = iter(codes[::-1].tolist())
    return "".join(one if one == "|" else f"{letters}."[next(found)] for one in line)


LINES = """
ngrxDxeaexCun .rrPdPeaeucu.   qnqgqagqogrxDxexCun ..sssss..rrPdPeucu.   ngagxDxexCxgagxn .sssPdPeucusssu.
gagqgrxDxexCn sss.rrPdPeuc.   ngagagogrxDxexCun .sssss.rrPdPeucu.   ngagrxDxexCgagn .sssrPdPeucsss.
ngrxDxxeaexxCuugagn .rrPdPPeaeuucuusss.   ngrxDqgagaxgexCgqun .rrPdsssssPeeucs.u.   ngrxDaxexCun .rrPd.Peucu.
ngrDgagxeaeCun .rrdsssPeaecu.   ngrDeaexxCun .rrdeaeuucu.   ngrDgagexCun .rrdeaeeucu.
ngrDgeaqoeCun .rrdseaeeecu.   ngrDgagCun .rrdeaecu.   ngrDCun .rrdcu.   ngrxDgaxexCgun .rrPdssPeucsu.
ngrxDgaxexCuongn .rrPdssPeucu....   ngrxDgaxgexCgun .rrPdssPeeucsu.   nggDxexCaggn ...dPeuc....
nrmkcyxDkcmxeqoykxCkcmyun .rppppPdpppPeee..uc.pp.u.   yrykyxDyxexCyxyn .rpppPd.Peuc.u..
ymyxDxexCn .ppPdPeuc.   ngrCuxngrxDxe|xCugrxDn .rrcuP.rrPdPe|udP.ruc.   rDxexC|Den rdPeuc|ce.
n|rDxexCrDxexC .|rcuePdrcuePd   n|nggagggxDqxeeaeexCmxrgggn .|.sssss.uc.ueeaeePdpPrrrr.
n|nDxeexCxggagggrogyn .|.cueePdPsssss.r.r..   n|nDqggxexCaggxrgn .|.csssuePdsssPrr.
n|nDggxexCqaggrn .|.cssuePdssssr.   n|nggggxDxexCaqggogxrgn .|...ssucuePdssss..Prr.
n|ggnDxexCaggrn .|...cuePdsssr.   n|nogqgxDxexCaggn .|..sssucuePdsss.   n|ggaggxDxexCn .|sssssucuePd.
n|gagggxDxexCn .|ssss.ucuePd.   n|nDxexCggrggrggn .|.cuePd..rrrrrr.   n|ngaggrDxexCngn .|.ssssrcuePd...
nrAxAxexAAxnrAgAxexAA .rdPdPeuccu.rdsdPeucc   nrAeAeA .rdecec   nrADeAn .rddec.   rxDxexDxexn rPdPePdPeP.
ngrxDDxexCCun .rrPddPeuccu.   ggaggrDeC|ggaggDeCn .sssrrdec|sssssced.   ngrxDxexCgCun .rrPdPeucscu.
ngrxDxexgCagn .rrPdPeusc...   nDxexCnxunrDxexCn .dPeuc.Pu.rdPeuc.   nggagogrxDxexCun ..sss.rrPdPeucu.
nrDeCg|an .rdec.|..   n|nggDxexCgaggrn .|...cuePdssssr.   n|nggDxexCraggn .|...cuePdr.rr.
n|nDggxexCaggqrn .|.cssuePdsss.r.   n|nggDgxeaexCaggrn .|.sscsueaePdsssr.   nryxDxexCn .rpPdPeuc.
nrxogn .rP...   nrDxexC .rdPeuc   nrDexC .rdeuc   nrDxeC .rdPec   nrDxenxCun .rdPe.Pcu.   noCun ..cu.
nrDaxn .rd.P.   nrDx|Den .rdP|ce.   nrAxenrAxexAun .rdPe.rdPeucu.   rDgxDxexC rd.PdPeuc
"""


@pytest.mark.parametrize(("line", "modules"), [*zip(*[iter(LINES.split())] * 2, strict=True)])
def test_each_kernel_of_a_layer_is_part_of_a_module_by_its_place_in_the_pass(line: str, modules: str) -> None:
    assert said(line, told(line)[1].module, "rpPdeacus") == modules


@pytest.mark.parametrize(
    ("line", "marks", "kinds"),
    [
        ("nDoCnDoCnDoCnDoCnDoCnDoCnDoCnDoCnDoCnDoCn",
         " f     b   B F       f B ~    ~  ~ bb   b", "FBBF?FR?B?"),
        ("nDoCnDoCnDoCnDoCn", "   F   B         ", "FBFF"),  # backward would be seen
        ("nDoCnDggCnDggCn|nDggCnDggCnDggCnDgggCnDggggCn",
         "     b    ~         f      bf   f     f", "FFRRBBRB"),  # three are as near to two as to four
        ("nDoC|nDoC", "      f ", "FR"),
        ("nDxen|nDxen", "", "fb"),
    ],
)  # fmt: skip
def test_a_pass_is_what_its_thread_and_the_names_within_it_say(line: str, marks: str, kinds: str) -> None:
    """In capitals what is whole."""
    passes, _ = told(line, marks)
    found = ["FRB?"[kind] for kind in passes.kind]
    assert [*kinds] == [one if whole else one.lower() for one, whole in zip(found, passes.whole, strict=True)]


@pytest.mark.parametrize(
    ("line", "marks", "kinds"),
    [
        ("rnDeCnr|r", "b          ", "b.fff.f|b"),  # outside of a pass by itself
        ("nDeaoCnr|nDeaaC", "  ~f      fb f", ".frfff.f|.bbbrb"),
        ("nDeCnDeCnr", " b    ~", ".bbb.....f"),
    ],
)  # fmt: skip
def test_what_runs_again_in_a_pass_is_told_from_the_rest(line: str, marks: str, kinds: str) -> None:
    assert said(line, told(line, marks)[1].kind, "frb") == kinds


def test_what_nothing_parts_is_parted_where_it_begins_to_run_again_or_backward() -> None:
    for line, marks, modules, kinds in (
        ("rxDxexCuuxxrxDxexC", "    ~    ~~~~~~~~~", "rPdPeucuuPPrPdPeuc", "ffffrffffrrrrrrrrr"),
        ("rxDxexCurrxDxexCxr", "    f    b ~ ~b", "rPdPeucurrucuePdPr", "f" * 9 + "bbrbrbbbb"),
    ):
        _, members = told(line, marks)
        assert said(line, members.module, "rpPdeacus") == modules
        assert said(line, members.kind, "frb") == kinds


def test_threads_part_lanes_where_more_than_half_of_the_launches_are_known() -> None:
    for launches, lanes in ((2, [0, 0, 0, 0]), (3, [0, 1, 1, 2])):
        run = Run()
        for place in range(4):
            run.work("gemm", 10 * place, 10 * place + 10, launched=place < launches, thread=place % 2)
        rank = run.rank()
        assert lanes_of(rank, resolve_kinds(rank)).lane.tolist() == lanes


@pytest.mark.parametrize(
    ("kinds", "part"),
    [
        ("norm/fwd ssm/x", Part.BORDER), ("router/map permute/map", Part.MAP), ("router/topk", Part.ROUTER),
        ("permute/pad", Part.REORDER), ("gemm/dense", Part.GEMM), ("gemm/grouped", Part.GROUPED),
        ("gemm/splitk_reduce gemm/grouped_setup other/copy", Part.OTHER), ("quantize/cast", Part.CAST),
        ("activation/fwd quantize/act_quant", Part.ACTIVATION),
    ],
)  # fmt: skip
def test_the_part_of_compute_is_in_its_class(kinds: str, part: Part) -> None:
    for class_, _, subclass in (kind.partition("/") for kind in kinds.split()):
        assert _part(KernelClass(class_, subclass, "any", None, None)) == part


@pytest.mark.parametrize(
    ("kinds", "name", "phase"),
    [
        ("permute/map/any router/topk/any activation/x/fwd", "topk_bwd", "bwd"),
        ("permute/map/any router/topk/any activation/x/fwd", "RowBackward<float>", "bwd"),
        ("norm/bwd/any norm/x/bwd permute/x/bwd", "kernel", "bwd"),
        ("norm/fwd/any norm/bwd/fwd attention/x/fwd", "norm_bwd", "fwd"),
        ("gemm/dense/any norm/x/opt other/x/any", "gemm_bwd", ""),
    ],
)
def test_a_kernel_says_its_way_by_its_class_or_by_its_name_where_that_moves_tokens(
    kinds: str, name: str, phase: str
) -> None:
    for class_, subclass, way in (kind.split("/") for kind in kinds.split()):
        kernel = KernelClass(class_, subclass, way, None, None)  # type: ignore[arg-type]
        assert _phase_named(name, kernel) == (PHASES.index(phase) if phase else UNTOLD)


LAYERS = """
FFBB|FFBB ....|.... 0110|0110   FB|FB ..|.. 00|00   FBFB|FBFB ....|.... -   FFBB 45.. 4554   FFBB 45.4 4554
FFBB 454. -   FFRBRB ...... 011100   f|FFBB|b 9|....|. .|0110|.   FFFBB ..... -   FFFBBB 01.... -
FFFFBBBB 01...... 01011010   FRBB|FFBB ....|.... -   FFBBR ..... 0110.
"""
"""Passes of each step, what ranges say of their layers, and these; in small letters outside of steps."""


@pytest.mark.parametrize(("line", "told", "layers"), [*zip(*[iter(LAYERS.split())] * 3, strict=True)])
def test_layers_are_those_that_are_named_else_as_many_as_a_microbatch_runs_through(
    line: str, told: str, layers: str
) -> None:
    kinds = line.replace("|", "")
    run = Run()
    for at in range(len(kinds)):
        run.work("norm", 10 * at, 10 * at + 5)
    kind = np.array(["FRB".index(one) for one in kinds.upper()])
    numbers = np.cumsum([*map("|".__eq__, line)])[[one != "|" for one in line]]
    step = np.where([one.isupper() for one in kinds], numbers, UNTOLD)
    said = np.array([UNTOLD if one == "." else int(one) for one in told.replace("|", "")])
    found = _counted(said, step, kind, _numbers(run.rank(), said, step, kind, np.arange(len(kinds))))
    if found is None:
        assert layers == "-"
        return
    found = _with_recomputed(found, kind, np.zeros_like(kind))
    assert "".join("." if one == UNTOLD else str(one) for one in found) == layers.replace("|", "")
