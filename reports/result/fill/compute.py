"""`ranks[].sm` and `ranks[].tensor_cores`: how SMs and tensor cores were used."""

from collections.abc import Mapping

from reports.result.fill.parts import because, copied, each
from traces.cures import cures
from traces.measure.measurements import RankMeasurements
from traces.measure.sm import SmUse
from traces.measure.sm_launches import LaunchUse
from traces.measure.sm_measured import Measured
from traces.missing import Missing, gap
from traces.sections import rank as typed

_USE = typed.LaunchUse.__struct_fields__
_NONE_SEEN = gap("no kernel in the window shows it", "choose a longer window")


def sm(use: SmUse) -> typed.Sm:
    """The SMs of one rank; theoretical occupancy is never called achieved."""
    gaps = {one.path.removeprefix("sm."): one for one in use.missing}
    whole = _launches(use.launches, gaps)
    blocks, stretch = use.comm_blocks, use.stretch
    filled = typed.Sm(
        **{name: getattr(whole, name) for name in _USE},
        sm_count=use.sm_count,
        capability_at_least=use.capability_at_least,
        by_class={name: _launches(one, gaps) for name, one in use.by_class.items()},
        comm_blocks=blocks.max_count if blocks else None,
        comm_blocks_mean=blocks.mean_count if blocks else None,
        stretch_frac=stretch.frac if stretch else None,
        stretch=copied(stretch, typed.Stretch) if stretch else None,
        measured=_measured(use.measured) if use.measured else None,
    )
    return because(
        filled,
        {
            "sm_count": gaps.get("launches", _NONE_SEEN),
            **each(("comm_blocks", "comm_blocks_mean"), gaps.get("comm_blocks")),
            **each(("stretch", "stretch_frac"), gaps.get("stretch")),
            "measured": gaps.get("measured"),
        },
    )


def _launches(use: LaunchUse | None, gaps: Mapping[str, Missing]) -> typed.LaunchUse:
    """`gaps`: by field of the whole, or of all of it."""
    if use is None:
        return typed.LaunchUse(**dict.fromkeys(_USE, gaps["launches"]))
    why = {name: gaps.get(f"launches.{name}", _NONE_SEEN) for name in _USE}
    return because(copied(use, typed.LaunchUse), why)


def _measured(use: Measured) -> typed.Measured:
    names = typed.Measured.__struct_fields__
    return because(copied(use, typed.Measured, samples=use.sample_count), each(names, _NONE_SEEN))


def tensor_cores(rank: RankMeasurements) -> typed.TensorCores:
    """GEMMs with and without tensor cores; a GPU without TF32 has no rate of it."""
    cores, cure = rank.tensor_cores, cures(rank.kind)["gpu"]
    rate = gap("the GPU has no TF32, or its peak rates are not known", cure)
    return because(
        copied(cores, typed.TensorCores),
        {
            "tf32": gap("the trace does not record the GPU's compute capability", cure),
            "half": gap("neither the GPU's model nor kernel names show whether it has tensor cores", cure),
            "fp32_to_tf32_frac": None if cores.tf32 is False else rate,
        },
    )
