"""What a word means, as a page: a wall, a fix, a measure by key or name, a rule, a finding, a
setting.

What is explained speaks for itself, from `heuristics`, which loads numpy; so that is imported when
asked for.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from typing import Final

from heuristics.config.about import NEWEST, Guidance
from reports.content.blocks import Blocks, Code, Part, Sentence, words
from reports.content.explain.topic import Topic, sentences
from reports.content.names import capital, codes, optional, when
from reports.content.page import Detail, Page
from reports.measures import GROUPS, Measure, measures, named
from reports.rows import each, those
from traces.errors import UsageError
from traces.nearest import nearest_names
from traces.patterns import compiled
from traces.spelling import printable

_NEAREST: Final = 3
_PHRASE: Final = compiled("[ /]")
"""What a name has not, and a line of a page has."""
_NUMBERED: Final = compiled(r"_\d+$")
_FIRST: Final = ("wall", "fix")
"""Kinds of topics that are listed apart, before measures."""
_WORDS: Final = (*_FIRST, "word of the field", "word of the first screen")
"""Kinds of topics that are explained before measures of the same name."""
_FEWEST: Final = 2
"""Letters of a word that is looked for within a phrase."""


def explain_page(topic: str, edition: Guidance = NEWEST, detail: Detail = Detail.FULL) -> Page:
    """The explanation of a topic; without one, the list of all, by kind.

    Upper and lower case, `-`, `_` and blanks are the same, and a path such as
    `ranks[0].sm.fill_frac` is taken, or a line with a known word in it. A word that is several
    things gets all of them. `edition`: of NVIDIA's guides. Raises `UsageError` for an unknown one,
    naming the nearest.
    """
    if not topic.strip():
        return _everything()
    whole = _plain(topic)
    for name in _names(whole):
        if topics := _found(name, topic, edition):
            return _page_of(topics, topic, detail)
    if _PHRASE.search(topic.strip()) and topic.strip().isprintable():
        # the longest name whose words stand in a phrase, as `do this` in a title
        phrase = f"_{compiled('[^a-z0-9]+').sub('_', whole)}_"
        names = (*_by_name(edition), *map(_plain, each(measures().values(), "title")))
        held = [name for name in names if len(name) >= _FEWEST and f"_{name}_" in phrase]
        if held and (topics := _found(max(held, key=len), "", edition)):
            return _page_of(topics, topic, detail)
    known = {_joined(_plain(name)): name for name in measures()}
    for name, topics_of_name in _by_name(NEWEST).items():
        known[_joined(name)] = topics_of_name[0].name
    word = _joined(whole.rpartition(".")[2])
    nearest = [known[near_name] for near_name in nearest_names(word, known, _NEAREST)]
    near = optional(" The nearest: {}.", nearest, ", ".join)
    raise UsageError(
        f"nothing is named {printable(topic, 60)!r}.{near} Type moe-diag explain to list all."
    )


def _names(whole: str) -> Iterator[str]:
    """As it may be called: in full, by its last part, without a number, or written in one word."""
    yield from dict.fromkeys((whole, whole.rpartition(".")[2], _NUMBERED.sub("_", whole)))
    if (joined := _joined_names().get(_joined(whole))) is not None:
        yield joined
    yield compiled(r"[0-9]+$").sub("", whole) or whole


def _joined(name: str) -> str:
    return name.replace("_", "")


@cache
def _joined_names() -> dict[str, str]:
    names = _by_name(NEWEST)
    return dict(zip(map(_joined, names), names, strict=True))


def _page_of(topics: list[Topic], topic: str, detail: Detail) -> Page:
    kinds = ", ".join(dict.fromkeys(each(topics, "kind")))
    more = when(detail is Detail.FIRST, f"moe-diag explain {shlex.quote(topic)} --full")
    parts = tuple(
        Part(entry.title or entry.kind, tuple(entry.blocks()), _plain(entry.name))
        for entry in topics
    )
    return Page(words(Code(topics[0].name)), words(kinds), parts, detail, more)


def _plain(topic: str) -> str:
    return compiled(r"\[[^]]*\]").sub("", topic).strip().lower().replace("-", "_").replace(" ", "_")


def _singular(name: str) -> str:
    """A name with its words in the singular, so that `reads of token counts` is found by one
    read.
    """
    return "_".join(word.removesuffix("s") for word in _plain(name).split("_"))


def _found(name: str, topic: str, edition: Guidance) -> list[Topic]:
    from reports.content.explain.configuration import spelled
    from reports.content.explain.walls import limit_topics

    first, last = list[Topic](), list[Topic]()
    for own in _by_name(edition).get(name, ()):
        (first if own.kind in _WORDS else last).append(own)
    singular = _singular(name)
    titled = (
        named_alike
        for named_alike in measures().values()
        if _singular(named_alike.title) == singular
    )
    of_measures = []
    for measure in dict.fromkeys((*named(name), *titled)):
        kind = f"measure{optional(', in {}', measure.unit)}"
        of_measures.append(Topic(measure.name, kind, partial(_measure, measure), measure.title))
    topics_found = [*first, *of_measures, *last, *limit_topics(topic)]
    # findings whose id ends in what they were found of: `CFG-misspelled-3`
    families = (
        start for start in _by_name(edition) if start.endswith("_") and name.startswith(start)
    )
    return topics_found or [*spelled(topic)] or _by_name(edition).get(next(families, ""), [])


@cache
def _by_name(edition: Guidance) -> dict[str, list[Topic]]:
    """Topics by their plain name; measures are apart, as a part of a name is enough for them."""
    from reports.content.explain.configuration import configuration_topics
    from reports.content.explain.fixes import fix_topics, guide_topics
    from reports.content.explain.walls import wall_topics

    by_name = defaultdict[str, list[Topic]](list)
    for topic in (
        *wall_topics(),
        *fix_topics(edition),
        *guide_topics(edition),
        *configuration_topics(),
    ):
        by_name[_plain(topic.name)].append(topic)
    return by_name


def _measure(measure: Measure) -> Blocks:
    from reports.content.explain.walls import limit_items

    yield from sentences(("", measure.what), ("How", measure.how), ("Group", GROUPS[measure.group]))
    yield from limit_items(measure.limits)


def explained() -> dict[str, list[str]]:
    """Kind -> the names of that kind, each once. Measures are apart, in `reports.measures`."""
    of_kind = defaultdict[str, dict[str, None]](dict)
    for topics in _by_name(NEWEST).values():
        for topic in topics:
            of_kind[topic.kind][topic.name] = None
    return {kind: [*names] for kind, names in of_kind.items()}


def _everything() -> Page:
    of_kind, listed, blocks = explained(), {}, []
    for kind in _FIRST:
        listed[kind] = of_kind.pop(kind)
    for group, title in GROUPS.items():
        listed[title] = each(those(measures().values(), group=group), "name")
    for title, names in (listed | of_kind).items():
        blocks.append(Part(capital(title), (Sentence(codes(names)),), _plain(title)))
    about = words("explains a word")
    return Page(words("moe-diag explain WORD"), about, tuple(blocks), Detail.FULL)
