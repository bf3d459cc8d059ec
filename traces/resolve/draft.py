"""Purposes while they are being settled: an earlier kind of evidence is never overruled by a later one."""

from dataclasses import dataclass

import numpy as np

from traces.columns import PURPOSES, BoolArray, IntArray
from traces.resolve.resolution import CONFIDENCES, EVIDENCE, UNTOLD


@dataclass(frozen=True, slots=True)
class Draft:
    """Of each communication activity the purpose settled so far, shape (m,), `UNTOLD` where none."""

    purpose: IntArray
    evidence: IntArray
    confidence: IntArray

    @property
    def open(self) -> BoolArray:
        """What is not settled yet."""
        return np.equal(self.purpose, UNTOLD)

    def settle(self, which: BoolArray, purpose: str, evidence: str, confidence: str) -> None:
        """Settle what is still open of the mask."""
        now = which & self.open
        self.purpose[now] = PURPOSES.index(purpose)
        self.evidence[now] = EVIDENCE.index(evidence)
        self.confidence[now] = CONFIDENCES.index(confidence)

    def settle_each(self, purpose: IntArray, evidence: str, confidence: str) -> None:
        """Settle what is still open, each with its own purpose (negative: stays open)."""
        for code in range(len(PURPOSES)):
            self.settle(purpose == code, PURPOSES[code], evidence, confidence)

    def of(self, *purposes: str) -> BoolArray:
        """Mask of what is settled so."""
        return np.isin(self.purpose, [PURPOSES.index(purpose) for purpose in purposes])


def empty_draft(count: int) -> Draft:
    """Nothing settled."""
    return Draft(*(np.full(count, UNTOLD, dtype=np.int64) for _ in range(3)))
