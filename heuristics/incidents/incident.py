"""Rows of incidents, and what a run meets of them: as it is, and with a fix that it does not have
yet.

A line of a log is a strong witness; a version, a setting or a GPU is a condition. What cannot be
known of a run is named, and the row then speaks with an "if".
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import starmap
from operator import attrgetter
from typing import Final, Literal, get_args

from msgspec import Struct

from heuristics.config.trust import TRACE
from heuristics.config.versions import Package, numbers
from heuristics.guides import situation
from heuristics.incidents import course
from heuristics.result.configured import Incident, IncidentKind, IncidentState, Sighting
from heuristics.result.judged import KnownIssue
from heuristics.rules.condition import RUNS, Condition
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.sections.section import copied
from traces.settings.derive import DEFAULT
from traces.settings.settings import Values
from traces.texts import Texts
from traces.toml_tables import read_keyed

ROOMS: Final = (course, situation)
"""Where facts stand that rows ask for."""
SUBJECTS: Final = ("dispatch", "memory", "graphs", "precision", "hangs", "speed", "programs")
"""Tables, in the order in which rows of one rank are told."""
OUT_OF_MEMORY: Final = "out-of-memory"
"""Any error of this kind, as a line of the log."""
SHARED_LINES: Final = frozenset(
    (OUT_OF_MEMORY, "collective-timeout", "grad-norm-nan", "local-grad-nan")
)
"""Lines of many causes: alone they witness none of them."""
STATES: Final[tuple[IncidentState, ...]] = get_args(IncidentState)


class IncidentRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row, under the thread that reports it.

    `what`: what happens and why, with its figure; `cure`: what helps, `set` the knobs that do,
    `fix` the catalogue's. `when`: what must hold of the run, by knobs and facts; `lines`: ids of
    lines of a log, of which one must be there, or only speaks for it where the row also stands
    `without_line`. `releases`: by package, the first that has it and the first that has not ("":
    none yet); any known package decides. `gpus`: families, none: any. `fixes`: whose change meets
    it; without `as_it_is` only these do. `explains`: failures and findings that it tells better;
    `unless`: rows that tell the same more closely.
    """

    id: str
    what: str
    cure: str
    source: str
    kind: IncidentKind
    when: Condition = RUNS.condition("True")
    lines: Texts = ()
    without_line: bool = False
    releases: dict[Package | Literal["container"], tuple[str, str]] = {}
    gpus: Texts = ()
    set: Values = {}
    fix: str = ""
    fixes: Texts = ()
    as_it_is: bool = True
    explains: Texts = ()
    unless: Texts = ()

    @property
    def affected(self) -> Texts:
        """Its releases in words."""
        return tuple(starmap(release_words, self.releases.items()))

    def seen_lines(self, run: Run) -> dict[str, int]:
        """Its lines in the run's log, each with the number of the first."""
        log = run.log
        if not log:
            return {}
        first = dict[str, int]()
        for message in log.messages:
            first.setdefault(message.id, message.line)
        if log.out_of_memory:
            first[OUT_OF_MEMORY] = log.out_of_memory[0].line
        return {id: first[id] for id in self.lines if id in first}

    def is_possible(self, run: Run) -> bool:
        """Whether nothing that is known of the run speaks against it, and its log shows a line if
        it must.
        """
        is_silent = self.lines and not self.without_line and not self.seen_lines(run)
        return not is_silent and self.fits(run)

    def fits(self, run: Run) -> bool:
        """Whether settings, releases and GPU may be those of the row, whatever a log shows."""
        return False not in (self.when.holds(run), self.released(run), self.on_gpu(run))

    def unknown(self, run: Run) -> Texts:
        """What would decide it and is not known of the run."""
        release = ("release",) if self.released(run) is None else ()
        gpu = ("gpu",) if self.on_gpu(run) is None else ()
        open_names = self.when.unknown(run) if self.when.holds(run) is None else ()
        return (*release, *gpu, *dict.fromkeys(map(attrgetter("name"), open_names)))

    def on_gpu(self, run: Run) -> bool | None:
        gpu = run.gpu
        if self.gpus and gpu is None:
            return None
        return not self.gpus or gpu in self.gpus

    def released(self, run: Run) -> bool | None:
        """Whether a package that is known is of an affected release; None where none of them is
        known.
        """
        is_told = not self.releases
        for package, (since, until) in self.releases.items():
            if (version := version_of(run, package)) is not None:
                is_told = True
                is_before = not until or numbers(version) < numbers(until)
                if not is_before or numbers(version) < numbers(since):
                    return False
        return is_told or None


def version_of(run: Run, package: Package | Literal["container"]) -> str | None:
    config = run.config
    if package == "container":
        return config.container
    return config.version_text(package)


@cache
def incidents() -> Mapping[str, IncidentRow]:
    """Every row by its id. Raises `WrongRow`."""
    by_id = dict[str, IncidentRow]()
    for subject in SUBJECTS:
        by_id |= rows(subject)
    return by_id


@cache
def rows(subject: str) -> Mapping[str, IncidentRow]:
    """The rows of one table, by id. Raises `WrongRow`."""
    return read_keyed("heuristics.incidents", f"{subject}.toml", IncidentRow, RUNS.readers)


@frozen
class Met:
    """A row that a run meets, or may."""

    row: IncidentRow
    state: IncidentState
    unknown: Texts
    lines: Mapping[str, int]
    seen: tuple[Sighting, ...]


def incidents_of(run: Run, proven: Texts = ()) -> tuple[Incident, ...]:
    """What a run meets as it is: seen in its log first, then met by all that is asked, then what
    may be.

    Of rows about one line, those that fit without an "if" stand for it; the others may be. So may
    those that only lines of many causes speak for, where failures are `proven` by the log's own
    figures and are none of theirs.
    """
    met, certain = [], set[str]()
    for row in incidents().values():
        if row.as_it_is and row.is_possible(run):
            met.append(_met(row, run))
            certain.update(() if met[-1].unknown else met[-1].lines)
    judged, sure = [], set[str]()
    for incident in met:
        if (incident.unknown and certain & incident.lines.keys()) or _is_beside(incident, proven):
            incident = replace(incident, state="possible")
        elif incident.state != "possible":
            sure.add(incident.row.id)
        judged.append(incident)
    kept = []
    for incident in judged:
        is_told = incident.state != "possible" or incident.lines or incident.row.when.holds(run)
        if is_told and sure.isdisjoint(incident.row.unless):
            kept.append(incident)
    return tuple(_as_incident(entry, run) for entry in sorted(kept, key=_rank))


def _is_beside(met: Met, proven: Texts) -> bool:
    """Whether proven failures tell lines of many causes, which alone speak for it, otherwise."""
    shared = met.lines and met.lines.keys() <= SHARED_LINES
    return bool(proven and shared) and set(proven).isdisjoint(met.row.explains)


def _met(row: IncidentRow, run: Run) -> Met:
    """Where only lines that several causes print are there, an open condition leaves the row one of
    them.
    """
    lines, unknown = row.seen_lines(run), row.unknown(run)
    is_witness = lines.keys() - SHARED_LINES or row.when.holds(run) is True
    state: IncidentState = "possible" if unknown else "met"
    if lines and is_witness:
        state = "seen"
    return Met(row, state, unknown, lines, tuple(_sightings(row, lines, run)))


def _rank(met: Met) -> tuple[int, bool, int]:
    """Seen before met; without an "if" before with one; what more of the run speaks for comes
    first.
    """
    return STATES.index(met.state), bool(met.unknown), -len(met.seen)


def _as_incident(met: Met, run: Run) -> Incident:
    row = met.row
    return copied(
        Incident,
        row,
        met,
        what=RUNS.filled(row.what, run),
        cure=RUNS.filled(row.cure, run),
        releases=row.affected,
        only_if=met.unknown,
    )


def _sightings(row: IncidentRow, lines: Mapping[str, int], run: Run) -> Iterator[Sighting]:
    """Lines of the log, versions, then settings that the condition names and somebody wrote."""
    for id, line in lines.items():
        yield Sighting("log", id, f"line {line}")
    for package in row.releases:
        if (version := version_of(run, package)) is not None:
            yield Sighting("evidence", f"{say(f'incidents.{package}')} {version}", "")
    by_knob = run.config.written.by_knob
    for knob in row.when.knobs:
        if knob in by_knob and by_knob[knob].said not in (DEFAULT, TRACE):
            yield Sighting("configuration", knob, by_knob[knob].said)


def known_issues(fix: str, sets: Values, run: Run) -> tuple[KnownIssue, ...]:
    """Incidents that a fix would lead this run into: what is known of it fits, what is not known is
    named.

    `sets`: knobs that the fix sets; all others are the run's.
    """
    changed = run.changed(sets)
    return tuple(
        copied(
            KnownIssue,
            row,
            what=RUNS.filled(row.what, changed),
            releases=row.affected,
            only_if=row.unknown(changed),
            workaround=RUNS.filled(row.cure, changed),
        )
        for row in incidents().values()
        if fix in row.fixes and row.fits(changed)  # it has not run so yet: no log shows the line
    )


def release_words(package: str, ends: tuple[str, str]) -> str:
    since, until = ends
    if not until:
        return say("rules.released", package=package, since=since)
    return say("rules.released-until", package=package, since=since, until=until)
