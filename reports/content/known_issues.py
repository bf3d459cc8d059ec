"""A published issue of a change in one sentence."""

from heuristics.result.judged import KnownIssue


def issue_sentence(one: KnownIssue, of_a_run: bool = True) -> str:
    """Where it was met, what happens, what helps, and its source. `of_a_run`: with what is unknown of it.

    The first package stands for all: their releases are the same in time.
    """
    where = one.releases[0] + (f", on {' or '.join(one.gpus)}" if one.gpus else "")
    if of_a_run and one.only_if:
        unknown = ", ".join(name.replace("_", " ") for name in one.only_if)
        where = f"if your release is {where}; not known here: {unknown}"
    return f"({where}): {one.what}. Workaround: {one.workaround}. {one.source}."
