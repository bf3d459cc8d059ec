"""What a document says of settings: where it says it, and what the one reader of settings answers.

`CLAIMS` is the table: a path of the document -> how a value there names settings and their values. `unread`
finds sentences that say a setting's value at a place that no row reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final

from heuristics.config.about import Given
from heuristics.config.view import Config, Trust
from heuristics.rules.condition import CONFIGURED
from heuristics.rules.values import NULL
from heuristics.run.run import Run
from heuristics.words import sentences
from reports.result.codec import Document
from traces.settings.knobs import knobs
from traces.sizes.peaks import peaks

UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class Claim:
    """One setting as a document has it. `known`: what the one reader of settings answers."""

    path: str
    setting: str
    stated: object
    known: object

    @property
    def agrees(self) -> bool:
        """Whether both are one answer."""
        return self.stated == self.known


Found = Iterator[tuple[str, object, object]]
Reader = Callable[[Any, Run], Found]


def walked(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a document that holds no other, with its path, without places in lists."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from walked(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from walked(one, path)
    else:
        yield path, value


def claims(document: Document, run: Run) -> Iterator[Claim]:
    """All that a document says of settings."""
    for pattern, read in SECTIONS.items():
        for path, value in _at(document, pattern):
            yield from (Claim(path, *found) for found in read(value, run))
    for path, value in walked(document):
        if isinstance(value, str) and not _is_foreign(path):
            yield from (Claim(path, *found) for found in _in_sentence(value, run))


def _at(value: object, pattern: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Sections, values and entries of lists at a path."""
    if path == pattern:
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _at(one, pattern, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _at(one, pattern, f"{path}[]")


# Sections


def _written(section: Mapping[str, Any], run: Run) -> Found:
    """A row of the configuration: the value as it was written, and where."""
    knob, written = section["knob"], run.config.written
    value = written.value(knob)
    yield knob, section["value"], list(value) if isinstance(value, tuple) else value
    yield f"{knob}, where", section["said"], written.said(knob)


def _seen(section: Mapping[str, Any], run: Run) -> Found:
    yield f"{section['knob']}, where", section["said"], run.config.written.said(section["knob"])


def _seen_in_files(section: Mapping[str, Any], run: Run) -> Found:
    if section["source"] == "configuration" and section["what"] in knobs():
        yield f"{section['what']}, where", section["where"], run.config.written.said(section["what"])


def _versions(section: Mapping[str, Any], run: Run) -> Found:
    for package, text in section.items():
        yield package, text, run.config.core_text if package == "core" else run.config.version_text(package)  # type: ignore[arg-type]


def _given(section: Mapping[str, Any], run: Run) -> Found:
    config = run.config
    for name, value in section.items():
        if name == "env":
            for text in value:
                variable, _, one = text.partition("=")
                yield f"env.{variable}", one, config.env(variable)
        elif name.endswith("_version"):
            yield from _versions({name.removesuffix("_version"): value}, run)
        else:
            known = getattr(config, name)
            yield name, value, list(known) if isinstance(known, tuple) else known


def _framework(value: object, run: Run) -> Found:
    yield "framework", value, run.config.written.framework


_FORMS: Final = {"fp16": "bf16", "mxfp8": "fp8"}


def _peak(section: Mapping[str, Any] | None, run: Run) -> Found:
    if section is None:
        return
    precision, gpu = run.precision or UNKNOWN, run.config.gpu
    form = "fp8" if precision.startswith("fp8") else _FORMS.get(precision, precision)
    published = (gpu, form) in peaks()
    found = section["peak"]
    yield "peak", found and (found["gpu"], found["precision"]), (gpu, form) if published else None


_HERE: Final[Mapping[str, Callable[[Run], object]]] = {
    "gpu": lambda run: run.config.gpu,
    "precision": lambda run: run.precision,
    "routing": lambda run: {"force_balance": "balanced"}.get(run.config.routing or "", "natural"),
    "sequence_length": lambda run: run.config.positive("seq_length"),
    "gpu_count": lambda run: run.config.world,
    "global_batch_size": lambda run: run.config.global_batch,
    "micro_batch_size": lambda run: run.config.micro_batch,
    "tp": lambda run: run.config.tp,
    "pp": lambda run: run.config.pp,
    "vpp": lambda run: run.config.vpp,
    "ep": lambda run: run.config.ep,
}
"""Aspects of a published run -> those of this one."""


def _nearest(section: Mapping[str, Any], run: Run) -> Found:
    yield section["what"], section["here"], _HERE[section["what"]](run)


def _assumed(sentence: str, run: Run) -> Found:
    """What the estimate of memory takes for not set."""
    if match := re.fullmatch(r"(\S+) \S+ \(not said\)", sentence):
        yield match[1], UNKNOWN, "known" if run.config.known(match[1]) else UNKNOWN


def _forced(value: bool, run: Run) -> Found:
    yield "routing forced", value, run.config.routing == "force_balance"


SECTIONS: Final[Mapping[str, Reader]] = {
    "configuration.settings[]": _written,
    "configuration.framework": _framework,
    "configuration.versions": _versions,
    "rules.broken[].seen[]": _seen,
    "defects[].seen[]": _seen_in_files,
    "given": _given,
    "forced_routing": _forced,
    "throughput": _peak,
    "throughput.nearest.differs[]": _nearest,
    "memory_estimate.assumed[]": _assumed,
}
"""Path of the document -> how what stands there names settings."""


# Sentences

FOREIGN: Final = (
    r"(fixes|levers)\.(knobs|arms|checked|known_issues|sources|gain_source|versions|title|verify|side_effects)"
    r"|(fixes|levers)\.preconditions|refused\.(source|title|unlocked_by)|combined|choices"
    r"|(fixes|levers)\.first_because|experiments\.\w+\.(title|measure|next|variable)"
    r"|defects\.(cure|what|cost|since|until)|rules\.(broken|undecided)\.(text|cure|source|asks)"
    r"|config_findings\.fix|normal|incidents"
    r"|workflow\.(title|advice|seed|tells)|throughput|memory_estimate|missing|walls\.evidence\.because"
    r"|tool|about|command|configuration\.problems|log"
)
"""Places of sentences about changes, guides and other runs, which say nothing of how this run is set."""


def _is_foreign(path: str) -> bool:
    return re.match(rf"(?:{FOREIGN})(?:\.|$)", path) is not None


SIZES: Final = r"\b(ETP|EDP|TP|CP|PP|EP|DP)(\d+)\b"
_ASIDE: Final = r"(?:start (?:of|is)|below|at least|stops at) CP\d+|before Megatron-Core [\d.]+"
"""Sizes and releases that the guides name, not those of the run."""


def _size(match: re.Match[str], run: Run) -> Found:
    name = match[1].lower()
    known = run.config.expert_tensor_size if name == "etp" else getattr(run.config, name)
    yield match[1], int(match[2]), known


def _place(match: re.Match[str], run: Run) -> Found:
    if match[1] in knobs():
        places = (run.config.where(match[1]), run.view(Trust.FILES).where(match[1]))
        yield f"{match[1]}, where", match[2], match[2] if match[2] in places else places[0]


def _graphs(match: re.Match[str], run: Run) -> Found:
    config = run.config
    if config.full_iteration:
        known = "full_iteration"
    else:
        known = " ".join((str(config.graph_impl), *(config.graph_parts or ())))
    yield "CUDA graphs", match[1], known


def _recomputed(match: re.Match[str], run: Run) -> Found:
    modules = run.config.recompute_modules() or ()
    for name in match[1].split(", "):
        yield "recomputed", name, name if name in modules else UNKNOWN


def _routing(run: Run) -> str:
    routing = run.config.routing or ""
    return "forced balance: a benchmark" if routing == "force_balance" else routing.replace("_", " ")


def _told(name: str, known: Callable[[Run], object]) -> Callable[[re.Match[str], Run], Found]:
    def read(match: re.Match[str], run: Run) -> Found:
        answer, stated = known(run), match[1].replace(",", "")
        if isinstance(answer, tuple):
            answer = stated if stated in answer else answer
        if isinstance(answer, bool):
            answer = ("on" if answer else "off") if stated in ("on", "off") else stated if answer else "no"
        yield name, stated, answer if answer is None else str(answer)

    return read


_ONE: Final = (
    (r"^precision \((.*)\)$", lambda run: run.precision),
    (r"^dispatcher \((.*)\)$", lambda run: run.config.dispatcher or run.observed.dispatcher),
    (r"^(alltoall|allgather|deepep|hybridep)(?::|, with| while)", lambda run: run.config.dispatcher),
    (r"but its type is (\w+):", lambda run: run.view(Trust.FILES).dispatcher),
    (
        r"^(\w+) is asked for, and (?:\w+ runs|the GEMMs)",
        lambda run: (run.view(Trust.FILES).dispatcher, run.view(Trust.FILES).precision),
    ),
    (r"^routing mode \((.*)\)$", _routing),
    (r"EP overlap is (on|off)", lambda run: run.config.ep_overlap),
    (r"DP(?:, TP)? overlap is (on|off)", lambda run: run.config.on("ddp.overlap_grad_reduce")),
    (r"TP overlap is (on|off)", lambda run: run.config.on("tp_comm_overlap")),
    (r"(?<!or )CUDA graphs are (not known)", lambda run: run.config.graph_impl or UNKNOWN),
    (r"CUDA graphs are (on|off)", lambda run: run.config.graph_impl != "none"),
    (r"^(the run is not in low precision)", lambda run: not run.config.low_precision()),
    (r"^(experts are not spread)", lambda run: not run.config.expert_parallel),
    (r"(recompute is not selective)$", lambda run: run.config.full_recompute),
    (r"(with recompute)$", lambda run: bool(run.config.full_recompute or run.config.recompute_modules())),
    (r"(recompute is selective)$", lambda run: bool(run.config.recompute_modules())),
    (r"(no full recompute)$", lambda run: not run.config.full_recompute),
    (r"^(full recompute)(?: runs|, and)", lambda run: run.config.full_recompute),
    (r"with (\d+) virtual stages a rank", lambda run: run.config.vpp),
    (r"(without virtual stages)", lambda run: run.config.vpp == 1),
    (r"at ([\d,]+) tokens, ", lambda run: run.config.positive("seq_length")),
    (r"in (?:NVLink )?domains of (\d+)", lambda run: run.config.nvlink_domain),
    (r"the (GPU) is not known", lambda run: run.config.hardware_class is None),
    (r"^TP is (\d+)$", lambda run: run.config.tp),
    (r"(attention has neither TP nor CP)", lambda run: run.config.tp == run.config.cp == 1),
)
"""A value in words, or words that are right where the answer is yes -> the answer."""
SENTENCES: Final[tuple[tuple[str, Callable[[re.Match[str], Run], Found]], ...]] = (
    *((SIZES, _size), (r"([a-z][\w.]+|[A-Z][A-Z_]+) in ([^\s;,]+)", _place)),
    *((r"^CUDA graphs \((.*)\)$", _graphs), (r"^recompute of ([\w, ]+?)(?: repeats|$)", _recomputed)),
    *((pattern, _told(pattern, known)) for pattern, known in _ONE),
)


def _in_sentence(text: str, run: Run) -> Found:
    if text.startswith("needs: "):
        return
    text = re.sub(_ASIDE, "", text)
    for pattern, read in SENTENCES:
        for match in re.finditer(pattern, text):
            yield from read(match, run)
    yield from _figures(text, run)


@cache
def _names() -> Mapping[str, str]:
    """Words of figures -> knob or fact."""
    return {**{knob: knob for knob in knobs()}, **{words: name for name, words in sentences("facts").items()}}


_STATED: Final = re.compile(r"not known|not set|another value|[\w.]+(, [\w.]+)*")


def _figures(text: str, run: Run) -> Found:
    """`EP 8, PyTorch not known, recomputed modules moe, mlp`: each to the next name, or the end."""
    found: list[list[str]] = []
    for part in text.split(", "):
        words = part.split(" ")
        starts = (" ".join(words[:end]) for end in range(len(words) - 1, 0, -1))
        name = next((start for start in starts if start in _names()), "")
        if name:
            found.append([name, part[len(name) + 1 :]])
        elif found:
            found[-1][1] += f", {part}"
    for name, stated in found:
        if _STATED.fullmatch(stated):
            as_checked, known = (
                _state(_names()[name], stated, one) for one in (run.view(Trust.CHECKED), run.config)
            )
            yield name, stated, as_checked if stated == as_checked else known


def _state(name: str, stated: str, config: Config) -> str:
    """A knob or fact in the words of a figure; of a list, those of its names that are stated."""
    value = CONFIGURED.named(name).of(config)
    if value is None or value is NULL or value == "":
        return UNKNOWN if value is None else "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple) and stated != "others":
        return ", ".join(one for one in stated.split(", ") if one in value) or "none"
    return stated if stated in ("others", "another value") and value else str(value)


# What no row reads

_KEYS: Final = {*knobs(), *(one.name for one in fields(Given)), "precision", "framework", "layout"}
_READ: Final = (
    r"given|configuration\.framework|throughput\.(peak|references\[\]|nearest\.reference)\."
    r"|(?:defects|incidents)\[\]\.set\.|walls\[\]\.cost_by_kind_ns|fixes\[\]\.acts_on|memory_estimate\.stage|tool\.guidance|framework$"
)
"""Keys named as a setting: read by `SECTIONS`, or of published runs, cures and kinds of cost."""
_SPOKEN: Final = r"EP overlap|[TD]P overlap|CUDA graphs|recompute|[a-z]+_[a-z_]+|[A-Z]+_[A-Z_]+"
_MEANT: Final = (
    r"^(CUDA graphs|recompute)$|not known|no --fake-process-group|^without TP and CP"
    r"|EP overlap is asked|ranks are inside one NVLink|it does not fit, with"
)
"""Sentences with a setting's name that state no value of it."""


def unread(document: Document, run: Run) -> Iterator[str]:
    """Keys and sentences that state a setting where no row of the tables reads it."""
    yield from (path for path in _keys(document) if not re.match(_READ, path))
    for path, value in walked(document):
        stated = isinstance(value, str) and path.startswith(("workflow.because", "experiments"))
        if stated and not _is_foreign(path) and _speaks(value) and not any(_in_sentence(value, run)):
            yield f"{path}: {value}"


def _keys(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key in _KEYS:
                yield f"{path}.{key}".lstrip(".")
            yield from _keys(one, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for one in value:
            yield from _keys(one, f"{path}[]")


def _speaks(text: str) -> bool:
    named_here = re.search(rf"(?<![\w.])(?:{_SPOKEN}) |{SIZES}", f"{text} ")
    return named_here is not None and not re.search(_MEANT, text)
