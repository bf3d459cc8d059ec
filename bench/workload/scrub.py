"""A PyTorch profiler trace with only what our reader reads: no paths, no host, no user, no date.

Times are moved so that the first is 0; nothing else that the reader takes changes.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from traces.columns import NULL
from traces.files.aside import write_whole
from traces.formats.kineto_collectives import (
    BYTES,
    EXCHANGE_OF,
    NOTHING,
    descriptions_of,
    fingerprint,
    listed,
    purpose_of,
    ranks,
    text_of,
)
from traces.formats.kineto_json import GZIP_MAGIC, Event, parsed
from traces.formats.kineto_rows import EventRow, Numbers, whole
from traces.formats.kineto_schema import FRAMES
from traces.patterns import compiled

_GPU_KEYS: Final = (
    "id",
    "name",
    "totalGlobalMem",
    "computeMajor",
    "computeMinor",
    "maxThreadsPerMultiprocessor",
    "regsPerMultiprocessor",
    "sharedMemPerMultiprocessor",
    "numSms",
    "warpSize",
)
_EVENT_KEYS: Final = ("cat", "name", "ph", "pid", "tid")
_ARGUMENT_KEYS: Final = Numbers.__struct_encode_fields__
_NS_PER_US: Final = 1000
_CUT_RANKS: Final = compiled(r"\[[\s\d,.]*\]")
"""A list of ranks and nothing else; long ones end with points."""


class KnownWords:
    """What of collectives' arguments may be written again: known words, numbers, and groups without a name.

    A group's own number stands for it, or one made of its name, so that it is the same on every rank.
    """

    def __init__(self, header: Mapping[str, object]) -> None:
        self._described = descriptions_of(header)
        self._listed = listed(header)

    def of(self, given: Event) -> Event:
        kept: Event = {}
        if (name := text_of(given, "Collective name")) in EXCHANGE_OF:
            kept["Collective name"] = name
        if group := text_of(given, "Process Group Name"):
            is_number = group.isascii() and group.isdigit()
            kept["Process Group Name"] = group if is_number else str(fingerprint(group) % (1 << 64))
        members = text_of(given, "Process Group Ranks")
        if ranks(members) is None and group in self._listed:
            members = str(list(self._listed[group]))
        if _CUT_RANKS.fullmatch(members):
            kept["Process Group Ranks"] = members
        if (dtype := text_of(given, "dtype")) in BYTES:
            kept["dtype"] = dtype
        described = text_of(given, "Process Group Description") or self._described.get(group, "")
        if purpose_of(described) != NOTHING:
            kept["Process Group Description"] = described
        return kept


def scrub(recorded: Path, out: Path) -> int:
    """Write `recorded` to `out` (.json.gz), scrubbed, and count its GPU events.

    The same input always gives the same bytes. Raises what `kineto_json.parsed` raises, and OSError.
    """
    content = recorded.read_bytes()
    content = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
    header = cast(Event, parsed(content.decode("utf-8-sig", "replace")))
    events = [event for event in header.pop("traceEvents") if _table_of(event)]
    events = [event for event in events if event["cat"].lower() != FRAMES]  # they name files of this machine
    events.sort(key=lambda event: str(_table_of(event)))
    starts_ns = [at for event in events if (at := _ns(event, "ts")) != NULL]
    first_ns = min(starts_ns, default=0)
    words = KnownWords(header)
    kept = [_kept(event, first_ns, words) for event in events]
    document = {**dict(_header(header)), "traceEvents": kept}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    write_whole(out, gzip.compress(text.encode(), mtime=0))
    return sum(event["cat"].lower().endswith(("kernel", "memcpy", "memset")) for event in events)


def _table_of(event: Event) -> str | None:
    return EventRow(ph=event.get("ph"), cat=event.get("cat"), name=event.get("name")).table


def _header(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    version = whole(given.get("schemaVersion"))
    yield "schemaVersion", 1 if version == NULL else version
    gpus, distributed = given.get("deviceProperties"), given.get("distributedInfo")
    if isinstance(gpus, list):
        yield "deviceProperties", [_only(gpu, _GPU_KEYS) for gpu in gpus if isinstance(gpu, dict)]
    if isinstance(distributed, dict):
        yield "distributedInfo", _only(distributed, ("rank", "world_size"))


def _kept(event: Event, first_ns: int, words: KnownWords) -> Event:
    kept = _only(event, _EVENT_KEYS)
    start_ns, length_ns = _ns(event, "ts"), _ns(event, "dur")
    if start_ns != NULL:
        kept["ts"] = (start_ns - first_ns) / _NS_PER_US
    if length_ns != NULL:
        kept["dur"] = length_ns / _NS_PER_US
    arguments = event.get("args")
    if isinstance(arguments, dict) and (some := _only(arguments, _ARGUMENT_KEYS) | words.of(arguments)):
        kept["args"] = some
    return kept


def _ns(event: Event, key: str) -> int:
    return whole(event.get(key), _NS_PER_US)


def _only(given: Mapping[str, object], keys: tuple[str, ...]) -> Event:
    return {key: given[key] for key in keys if key in given}
