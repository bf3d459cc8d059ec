"""Steps from equal graphs recorded whole: n equal replays are n steps whose content is not seen."""

import numpy as np

from traces.account.data_pauses import input_copies
from traces.columns import IntArray
from traces.steps.borders import HostOrder, found_between
from traces.steps.found import Found
from traces.timeline import RankTimeline
from traces.whole_graphs import equal_replays


def replay_steps(rank: RankTimeline, order: HostOrder) -> Found | None:
    """Equal replays that make up most of the work, each with what was launched up to the next; else None.

    A step begins with the copies of its input, so that the wait for these is its own.
    """
    replays = equal_replays(rank.activities)
    if not len(replays):
        return None
    start_ns = _with_input(rank, np.sort(rank.activities.launch_ns[replays]))
    end_ns = np.append(start_ns[1:], order.launch_ns[-1] + 1)
    return found_between(order, start_ns, end_ns, "equal CUDA graph replays, recorded whole")


def _with_input(rank: RankTimeline, replay_ns: IntArray) -> IntArray:
    """When the first input copy since the last replay was launched, else the replay itself, shape (n,).

    Of copies before the first replay as many are its own as the second has.
    """
    copies_ns = np.sort(rank.activities.launch_ns[input_copies(rank)])
    feeds = np.searchsorted(replay_ns, copies_ns)
    first_count, usual_count = int((feeds == 0).sum()), int((feeds == 1).sum())
    others = max(first_count - usual_count, 0)
    copies_ns, feeds = copies_ns[others:], feeds[others:]
    fed = feeds < len(replay_ns)
    start_ns = replay_ns.copy()
    start_ns[feeds[fed][::-1]] = copies_ns[fed][::-1]  # of equal places the last one written stays
    return start_ns
