"""Names of host rows that may leave a recording: CUDA calls, and NVTX ranges built of known words.

Anybody may write anything into an NVTX range: a path, a user, a host. So the text of a range is passed on
only where a framework wrote it, or where each of its words is one that training loops use.
"""

import re
from functools import cache
from typing import Final

_CALL: Final = re.compile(r"(cu(?:da)?[A-Z][A-Za-z0-9]{1,60})(?:_(?:v\d+|ptsz|ptds))*")
_DECORATION: Final = re.compile(r", (?:seq|op_id|sizes|input_op_ids) = .*", re.DOTALL)
"""What PyTorch's emit_nvtx appends to the name of an operator."""
_OF_FRAMEWORKS: Final = re.compile(
    r"aten::\w{1,60}|c10d::\w{1,60}|nccl:\w{1,40}|nccl[A-Z][A-Za-z]{2,40}|nvte_\w{1,80}|record_param_comms"
    r"|(?:autograd::engine::evaluate_function: )?(?:torch::autograd::)?"
    r"(?:[A-Z][A-Za-z]{1,40}Backward\d{0,2}|_?(?:GroupedLinear|LayerNorm\w{0,12}|AllToAll)Backward"
    r"|AccumulateGrad)"
    r"|ProfilerStep#\d{1,6}|Optimizer\.(?:step|zero_grad)#(?:Fused|CPU)?(?:Adam[Ww]?|SGD|Lion|Muon)\.\w{1,12}"
    r"|(?:Fused|HybridEP)(?:Dispatch|Combine)|MPI_[A-Z][a-z]{2,12}"
)
_ADDRESS: Final = re.compile(r"\d\.\d+\.\d")
_WORD: Final = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]")
_MARKS: Final = frozenset(" _.:#-=()[]+")
_WORDS: Final = frozenset(
    """
    a2a accumulate activation adam all alltoall attention attn aux backward barrier batch benchmark block bwd
    capture checkpoint chunk clip clipping combine communication compute core cross cuda data decoder delay
    dense dispatch dot embedding encoder entropy eval evaluate evaluation expert experts f b fc ffn final
    forward fsdp fused fwd gate gather generate grad gradient gradients grads graph grouped head init inter
    iteration iter iterations kernel layer layers linear loader loading local logging loop loss main matmul
    memory micro microbatch mla mlp model module moe next nccl norm of ops optimizer or output overlap p2p
    param params permute pipeline post pre preprocess product projection proj qkv reduce recompute recv
    residual ring rope route router routing sample save scaled scatter scores self send shared softmax stage
    step steps sync synchronize t the to token tokens topk train training transformer unpermute update
    validation warmup weight weights wgrad dgrad zero
    """.split()  # noqa: SIM905
)
"""What ranges of training loops are made of, besides numbers."""
_LENGTH: Final = 100


@cache
def public_call(text: str) -> str | None:
    """A call of the CUDA runtime or driver without its version; None for any other text."""
    found = _CALL.fullmatch(text)
    return found[1] if found else None


def public_range(text: str) -> str | None:
    """The text of a known range, without what a profiler appended; None where it may be private."""
    said = _DECORATION.sub("", text.strip())
    if len(said) > _LENGTH or not said.isascii() or _ADDRESS.search(said):
        return None
    if _OF_FRAMEWORKS.fullmatch(said):
        return said
    words = _WORD.findall(said)
    return said if any(map(str.isalpha, words)) and all(map(_is_known, words)) else None


def _is_known(word: str) -> bool:
    """Numbers are indexes: with six digits at most none is an address or an account."""
    if word.isdigit():
        return len(word) <= 6
    return word in _MARKS or word.lower() in _WORDS
