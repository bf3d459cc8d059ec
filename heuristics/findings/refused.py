"""Known lines of a log by what they refuse, skip or drop; their texts are in `traces.training_log`."""

from __future__ import annotations

from typing import Final

FLEX_REFUSED: Final = (
    "flex-skipped",
    "flex-gpu",
    "flex-no-backend",
    "flex-without-backend",
    "backend-without-flex",
    "flex-fake-group",
    "deepep-missing",
    "hybridep-missing",
    "ncclep-missing",
)
OVERLAP_REFUSED: Final = (
    "overlap-no-ep",
    "overlap-no-experts",
    "overlap-dispatcher",
    "overlap-precision",
    "overlap-torch",
    "overlap-no-vpp",
    "overlap-shared-experts",
    "overlap-full-recompute",
    "overlap-recompute-method",
    "overlap-recompute-layers",
    "overlap-moe-recompute",
    "overlap-mtp",
    "overlap-mtp-at-most-one",
    "overlap-mtp-one-stage",
    "overlap-graph-modules",
    "overlap-energon-off",
)
WGRAD_REFUSED: Final = (
    "wgrad-no-overlap",
    "wgrad-implementation",
    "wgrad-te",
    "wgrad-reduce",
    "wgrad-reduce-te-0.14",
    "wgrad-reduce-te",
    "wgrad-no-fusion-te",
    "wgrad-reduce-te-bridge",
    "wgrad-fusion-te-bridge",
    "wgrad-graph-te",
    "wgrad-graph-te-2.12",
    "wgrad-graph-fusion",
    "wgrad-graph-bias",
    "wgrad-graph-bias-lm",
    "wgrad-legacy-gemm",
)
GRAPHS_REFUSED: Final = (
    "graph-nothing-captured",
    "graph-register",
    "graph-expandable",
    "graph-full-recompute",
    "graph-full-recompute-lm",
    "graph-recompute",
    "graph-attn-recompute",
    "graph-moe-recompute",
    "graph-moe-dropless",
    "graph-moe-and-router",
    "graph-preprocess-alone",
    "graph-preprocess-sync",
    "graph-sync-order",
    "graph-no-dense-layer",
    "graph-no-experts",
    "graph-cpu-offload",
    "graph-rng",
    "graph-nan-check",
    "graph-nan-check-bridge",
    "graph-bridge-local",
    "graph-packed",
    "graph-packed-energon",
)
RECOMPUTE_REFUSED: Final = (
    "recompute-moe-act",
    "recompute-shared-experts",
    "recompute-mla",
    "recompute-module-name",
    "recompute-delayed-scaling",
)
