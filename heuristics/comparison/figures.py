"""How a comparison spells differences in its sentences."""


def milliseconds(time_ns: int) -> str:
    """A duration in ms, to a microsecond: `3,408.381 ms`."""
    return f"{time_ns / 1e6:,.3f} ms"


def signed_milliseconds(delta_ns: int) -> str:
    """A difference in ms, to a microsecond: `+5.000 ms`; what is nearer to zero than that has no sign."""
    return f"{delta_ns / 1e6:+z,.3f} ms".replace("+0.000", "0.000")


def signed_percent(delta_ns: float, of_ns: int) -> str:
    """A difference as part of a whole, with two decimals: `+5.00 %`; of nothing, `an unknown share`."""
    if not of_ns:
        return "an unknown share"
    return f"{100 * delta_ns / of_ns:+z,.2f} %".replace("+0.00", "0.00")
