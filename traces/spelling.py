"""How numbers and foreign names are written where people read, alike in every sentence and format.

Figures have three significant digits, shares at most one decimal. Times are in ms unless said
otherwise; exact integers of nanoseconds and bytes are in the JSON document.
"""

import shlex
import unicodedata
from collections.abc import Sequence
from math import floor, log10
from typing import Final

from traces.limits import Limit

DIGITS: Final = 3
LINE: Final = Limit(
    2_000,
    "bytes",
    "ours: our own longest list of names has 900, and no message needs more of a text",
)


def rounded(value: float) -> str:
    """Three significant digits without an exponent: `0.0123`, `1.23`, `98.8`, `12,300`."""
    if value == 0:
        return "0"
    places = max(0, DIGITS - 1 - floor(log10(abs(value))))
    text = f"{round(value, DIGITS - 1 - floor(log10(abs(value)))):,.{places}f}"
    if places > DIGITS:
        return text.rstrip("0").rstrip(".")
    return text


def percent(share: float) -> str:
    """A measured share: whole from 10 % on, one decimal below; never 0 % or 100 % for what is
    not.
    """
    if share == 0:
        return "0 %"
    if 0 < abs(share) < 0.0005:
        if share > 0:
            return "<0.1 %"
        return ">-0.1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    if abs(share) >= 0.0995:
        return f"{share * 100:.0f} %"
    return f"{share * 100:.1f} %"


def chosen(share: float) -> str:
    """A share that somebody chose, as it was given: `3 %`, `0.25 %`."""
    return f"{share * 100:g} %"


def milliseconds(time_ns: float) -> str:
    """A time in ms, without its unit; `<0.001` for what is not zero but rounds away."""
    if 0 < abs(time_ns) < 1000:
        if time_ns > 0:
            return "<0.001"
        return ">-0.001"
    return rounded(time_ns / 1e6)


def in_ms(time_ns: float) -> str:
    """A time in ms with its unit: `93.8 ms`."""
    return f"{milliseconds(time_ns)} ms"


def signed_ms(delta_ns: float) -> str:
    """A difference of times in ms with its sign: `+5.00 ms`."""
    return signed(in_ms(delta_ns))


def places(largest_ns: float) -> int:
    """Decimals of a column in ms whose largest value has three significant digits; at most
    three.
    """
    if largest_ns:
        return min(3, max(0, DIGITS - 1 - floor(log10(abs(largest_ns) / 1e6))))
    return 0


def adding_up(times_ns: Sequence[int], total_ns: int, decimals: int) -> tuple[list[str], str, str]:
    """Times in ms with as many decimals, what is left of the total, the total: as printed they add
    up.
    """
    unit_ns = 10 ** (6 - decimals)
    shown = [round(time_ns / unit_ns) for time_ns in times_ns]
    total = round(total_ns / unit_ns)
    written = [f"{one / 10**decimals:,.{decimals}f}" for one in (*shown, total - sum(shown), total)]
    return written[:-2], written[-2], written[-1]


def signed(text: str) -> str:
    """A difference with its sign: `+3.27`, `-0.28`, `0`."""
    if text[0] not in "-<>" and any(char in "123456789" for char in text):
        return f"+{text}"
    return text


def duration(time_ns: float) -> str:
    """A time with the unit that fits: `41 us`, `93.8 ms`, `12.5 s`."""
    return _thousands(time_ns, "s", "ms", "us") or f"{time_ns:.0f} ns"


def _thousands(value: float, *units: str) -> str:
    """A value in the largest of three units, 10**9, 10**6 and 10**3, that is no larger than it;
    empty where all are.
    """
    for size, unit in zip((1e9, 1e6, 1e3), units, strict=True):
        if abs(value) >= size:
            return f"{rounded(value / size)} {unit}"
    return ""


def gigabytes(count: float) -> str:
    """Bytes as GB, decimal as the GPUs' data sheets: `25.5 GB`."""
    return f"{rounded(count / 1e9)} GB"


def sized(count: float) -> str:
    """Bytes in the unit that suits them: `672 B`, `16.8 MB`, `25.5 GB`."""
    return _thousands(count, "GB", "MB", "kB") or f"{count:.0f} B"


def billions(count: float) -> str:
    """Parameters in billions, without the word: `30.5`."""
    return rounded(count / 1e9)


def megabytes(count: float) -> str:
    """Bytes as MB, decimal, without its unit: `25.5`."""
    return rounded(count / 1e6)


def saving(low: float | None, high: float | None) -> str:
    """What a change saves, as a range of shares of the step: `25-28 %`, `up to 18 %`, `-2.9 % to
    +6.8 %`.
    """
    if high is None:
        return "not replayed"
    if low is None:
        return f"up to {percent(high)}"
    if low <= -0.0005:
        return f"{percent(low)} to +{percent(high)}"
    if percent(low) == percent(high):
        return percent(high)
    return f"{percent(low).removesuffix(' %')}-{percent(high)}"


def between(low: str, high: str) -> str:
    """Two ends of a range as they are written; one figure where they read alike."""
    if low == high:
        return low
    return f"{low} to {high}"


def counted(count: int, singular: str, many: str = "") -> str:
    """A number of things: `1 step`, `12 steps`."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def numbers(ranks: Sequence[int]) -> str:
    """Numbers in order, those in a row as a range: `0, 3 to 7`."""
    runs: list[list[int]] = []
    for number in sorted(ranks):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(map(_run, runs))


def _run(numbers: Sequence[int]) -> str:
    if len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def first_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def spoken(identifier: str) -> str:
    """An id in a sentence: `host overhead` for `host_overhead`."""
    return identifier.replace("_", " ")


def file_word(name: str) -> str:
    """A file's name as one word of a line to type, whatever is in it; it is never an option."""
    shown = printable(name, max(len(name), 3))
    return shlex.quote(f"./{shown}" if shown.startswith("-") else shown)


def gpu_model(name: str) -> str:
    """A model of a GPU without its maker: `H100 80GB HBM3`."""
    return name.removeprefix("NVIDIA ")


def printable(name: str, width: int) -> str:
    """A foreign name made harmless: no cursor moves, line breaks or turned reading; cut in the
    middle.
    """
    clean = name
    if not name.isprintable():  # of what that calls printable nothing is changed
        clean = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name)
    if len(clean) <= width:
        return clean
    head = (width - 3) * 2 // 3
    return clean[:head] + "..." + clean[len(clean) - (width - 3 - head) :]


def one_line(message: str, most_bytes: int = LINE.whole) -> str:
    """A message with whatever it quotes as one harmless line; cut in the middle: what and the cure
    stay.
    """
    ends = (
        message
        if len(message) <= 2 * most_bytes
        else f"{message[:most_bytes]}...{message[-most_bytes:]}"
    )
    line = " ".join(printable(ends, len(ends)).split())
    written = line.encode()
    if len(written) <= most_bytes:
        return line
    head = (most_bytes - 3) * 2 // 3
    tail = len(written) - (most_bytes - 3 - head)
    begin, end = written[:head].decode(errors="ignore"), written[tail:].decode(errors="ignore")
    return f"{begin}...{end}"
