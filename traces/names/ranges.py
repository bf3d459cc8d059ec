"""NVTX range texts: those that name a step, or what a host thread is busy with, and those that may
be shown.

Anybody may write anything into an NVTX range: a path, a user, a host. So the text of a range is
passed on only where a framework wrote it, or where each of its words is one that training loops
use.
"""

from functools import cache
from typing import Final

from traces.patterns import BLANKS, LETTERS, Pattern, compiled, unlike

_BEFORE: Final = rf"(?:[{LETTERS}_{BLANKS}]*[{BLANKS}_.-])?"
_NUMBERED: Final = r"[\s_#:=-]*\d+"
_STEP_NAMES: Final = (
    rf"{_BEFORE}iter(?:ation)?s?{_NUMBERED}",  # iteration N: common in training loops
    rf"{_BEFORE}steps?{_NUMBERED}",  # step N, train_step_N (NeMo AutoModel), global_step: N
    r"ProfilerStep#\d+",  # PyTorch profiler
    # one text for every step
    r"(?:(?:train(?:ing)?|prefill|decode|generation|inference)[\s_])?(?:step|iteration)",
    # vLLM, v1/worker/gpu_worker.py: one pass of the engine, with or without the number of tokens
    r"execute_(?:\d+_)?(?:context|new|model)\S*",
    # SGLang, model_executor: step[DECODE bs=16]; TensorRT-LLM, py_executor: _forward_step 12: ...
    rf"(?:\[\w+\][{BLANKS}]*)?{_BEFORE}steps?(?:{_NUMBERED})?(?:\[[^\]]*\]|:\s.*)",
    # passes that a benchmark times; those that it does before, to warm up, are none
    rf"(?:(?:train(?:ing)?|timed|measured|benchmark)[\s_-])?(?:pass|trial){_NUMBERED}",
    # loops that generate one token after another
    rf"(?:(?:next|new|generate|generation|decode|sample)[\s_-]*)?token{_NUMBERED}(?:_(?:generation|processing))?",
)
_STEP_NAME: Final = compiled(r"(?i)^\s*(?:" + "|".join(_STEP_NAMES) + r")\s*$")
_OPTIMIZER_NAMES: Final = (
    # torch.optim profiles each step so; its zero_grad is no end of a step
    r"Optimizer\.step#[\w.]+",
    rf"(?:[{LETTERS}_]+[_.])?optimi[sz]er(?:[\s_.-]?step)?(?:{_NUMBERED})?",
    r"## optimizer ##",
)
_OPTIMIZER_NAME: Final = compiled(r"(?i)^\s*(?:" + "|".join(_OPTIMIZER_NAMES) + r")\s*$")
_BACKWARD_NAME: Final = compiled(r"\bautograd::engine|Backward\d*\b|\bbackward\b")
_NUMBER: Final = compiled(r"\d+")
_HOLDS: Final = compiled(r"\[[^\]]*\]\s*$|\([^)]*\)|: .*")


def is_step_name(text: str) -> bool:
    """Whether a whole range text reads as the name of a training step."""
    return _STEP_NAME.fullmatch(text) is not None and not is_optimizer_name(text)


def is_optimizer_name(text: str) -> bool:
    """Whether a whole range text, PyTorch's `, seq = ...` aside, says that an optimizer steps in
    it.
    """
    return _OPTIMIZER_NAME.fullmatch(text.split(", ")[0]) is not None


def is_backward_name(text: str) -> bool:
    """Whether all that such a range launches is backward's: an operator of autograd, or a whole
    pass.
    """
    return _BACKWARD_NAME.search(text) is not None and "forward" not in text.lower()


def family(text: str) -> str:
    """A range text with its numbers as `N`, so that `iteration 3` and `iteration 4` are one
    family.
    """
    return _NUMBER.sub("N", text.strip())


def step_family(text: str) -> str:
    """The family of a step's name, without what a pass holds: `step[DECODE bs=16]` is a step as
    `step[EXTEND bs=1]` is.
    """
    return family(_HOLDS.sub("", text))


_ANY: Final = r"(?:sav|load|writ|restor|stor)(?:e|ing|es)?"
_NO_FUNCTION: Final = rf"_(?:[^f]|$|f(?:[^ur]|$|u{unlike('nction')}|r{unlike('ame')}))"
HOST_RANGES: Final[dict[str, Pattern]] = {
    cause: compiled(rf"(?i){pattern}")
    for cause, pattern in {
        "evaluation": r"(?:^|[^a-z:])(?:eval(?:uat(?:e|ion|ing))?|validat(?:e|ion|ing))"
        rf"(?:[^a-z_]|$|{_NO_FUNCTION})",
        "logging": r"(?:^|[^a-z])(?:logging|log[\s_-](?:metrics|stats|scalars|step|loss))"
        r"|tensorboard|wandb|mlflow|metrics[:\s_-]+(?:publish|log|write)",
        "data": r"data[\s_]?loader|data[\s_]?(?:load|fetch|iter)\w*"
        r"|(?:get|next|load|fetch)[\s_]?batch|batch[\s_]?(?:load|fetch)|\bdali\b|\bffcv\b",
        "checkpoint": rf"(?:^|[^a-z])(?:async[\s_-])?{_ANY}[\s_-]+(?:\w+[\s_-])?(?:checkpoint|ckpt)"
        rf"|(?:checkpoint|ckpt)(?:ing)?[\s:._-]+{_ANY}(?:[^a-z]|$)|state_dict",
        "lazy_init": r"nvrtc|compil(?:e(?:[^dr]|$)|ation|ing)",
        "gc": r"(?:^|[^a-z])(?:gc|garbage[\s_-]?collect\w*)(?:[^a-z]|$)",
        "host_comm": r"^(?:MPI_(?:[^FI]|Fe|I[^n])|(?:nv)?shmem_(?:[^fi]|fe|i[^n]))",
    }.items()
}
"""Cause of a late launch -> the texts that name it, the weakest first: a later one says more of the
moment.

`lazy_init` is compilation, by NVRTC or any just-in-time compiler; that a compiled region runs is
none of it. Activation checkpoints (`CheckpointFunction`) save nothing to disk, and autograd's
`evaluate_function` is no evaluation. Calls that begin or end MPI, or read files by it, are no
`host_comm`. """


_HASH: Final = compiled(r"[0-9a-z]{32,}")
"""No word is as long: what stands in it by chance says nothing."""


@cache
def cause_of_range(text: str) -> str | None:
    """What a range says that its thread does, a key of `HOST_RANGES`; None where it says none of
    them.
    """
    bare = _HASH.sub("", text)
    return next((cause for cause in reversed(HOST_RANGES) if HOST_RANGES[cause].search(bare)), None)


_AGAIN: Final = compiled(r"(?i)checkpoint|recomput|(?:^|[^a-z])remat")


def is_recompute_name(text: str) -> bool:
    """Whether a range, or a function, says that activations may be computed again in it."""
    return _AGAIN.search(text) is not None and cause_of_range(text) != "checkpoint"


_CALL: Final = compiled(r"((?:cu(?:da)?|hip)[A-Z][A-Za-z0-9]{1,60})(?:_(?:v\d+|ptsz|ptds))*")
_DECORATION: Final = compiled(r"(?s), (?:seq|op_id|sizes|input_op_ids) = .*")
"""What PyTorch's emit_nvtx appends to the name of an operator."""
_OF_FRAMEWORKS: Final = compiled(
    r"(?:aten|c10d|fbgemm|vllm|symm_mem|FSDP|_C|_C_cache_ops|sgl_kernel|aiter|transformer_engine)::\w{1,60}"
    r"|torch(?:::|\.)distributed(?:(?:::|\.)(?:ddp|reducer)){1,2}::\w{1,40}|detach_?"
    r"|DistributedDataParallel\.forward"
    r"|nccl:\w{1,40}|nccl[A-Z][A-Za-z]{2,40}|nvte_\w{1,80}|record_param_comms"
    r"|(?:autograd::engine::evaluate_function: )?(?:torch::autograd::)?"
    r"(?:[A-Z][A-Za-z]{0,40}(?:\dD[A-Za-z]{0,40})?Backward\d{0,2}|_?(?:GroupedLinear|LayerNorm\w{0,12}|AllToAll)Backward"
    r"|AccumulateGrad)"
    r"|ProfilerStep#\d{1,6}|Optimizer\.(?:step|zero_grad)#(?:Fused|CPU)?(?:[NR]?Adam[Ww]?|Adagrad|Adadelta|Adamax|RMSprop|LAMB|SGD|Lion|Muon)\.\w{1,12}"
    r"|(?:Fused|HybridEP)(?:Dispatch|Combine)|MPI_[A-Z][a-z]{2,12}(?:_[a-z]{1,12}){0,3}|(?:nv)?shmem(?:_[a-z0-9]{1,12}){1,4}"
    r"|enumerate\(DataLoader\)#_(?:MultiProcessing|SingleProcess)DataLoaderIter\.__next__"
)
_ADDRESS: Final = compiled(r"\d\.\d+\.\d")
_WORD: Final = compiled(r"[A-Za-z]+|\d+|[^A-Za-z\d]")
_MARKS: Final = frozenset(" _.:#-=()[]+")
_WORDS: Final = frozenset(
    """
    a2a accumulate activation adam add all alloc allocate allocating allocation alltoall append
    apply assemble async attention attn augment aux awaitable b backprop backward barrier batch
    batches beam begin benchmark benchmarking bias block bn bookkeep broadcast bucket buckets
    buffer build building bwd cache calc calculate call capture check checkpoint chunk cleanup
    clip clipping cnn collate collect collection collective combine commit communication
    compilation compile compiled compiling compute computing concat context conv convert copy
    core count counts create cross cuda cumsum current data decode decoder delay dense
    dequantize deserialize detokenize detokenizer device dgrad diffusion dispatch dist done dot
    download draft drain drop embed embedding embeddings encode encoded encoder end engine
    entropy eplb epoch estimate eval evaluate evaluation event execute executor expand expert
    experts extend extract f fc feed fetch ffn fill filter final finalize find finish finished
    flatten flush for forward free fsdp full fuse fused fusion fwd gate gather gathered gelu
    generate generated generation generator get global grad gradient gradients grads graph group
    grouped groups handle hash head heads hidden hit image images index indices inference init
    initialization initialize initializing inner input inputs insert inter item items iter
    iteration iterations iterator jit job join k kernel key keys kv last layer layernorm layers
    layout length lengths linear list lm load loader loading local logging logits lookup loop
    lora loss lr main make manager map mapping mask match matmul max mean measure measured
    measurement memory merge message meta metadata metric metrics micro microbatch min mixed mla
    mlp mode model module moe move mul multi multihead multiplied multiply nccl net network next
    noise norm num nvrtc o of offload offloaded offloading offset one ops opt optimization
    optimize optimizer or outer output outputs overlap p2p pack pad padded padding page paged
    parallel param params parse part partial pass patch peek permute phase pin pinned pipeline
    pixel plan pool pooled pop position post pre prefetch prefetcher prefill prefix prep prepare
    preprocess print priority process processing product profile proj projection prompt prune
    pull push put q qk qkv quant quantize quantized queue random range rank ranks read reader
    ready recompute recv reduce refresh release relu remap remove repeat replace request
    requests reset reshape residual resize resolve response responses result results resume
    retract return reward ring rms rmsnorm rollout rope route router routing row rows run runner
    runtime sample sampler sampling save scaled scatter schedule scheduler scope score scores
    self send seq seqs sequence sequences serialize set shape shard shared shuffle silu single
    size skip slice slot slots softmax sort span sparse speculative split splits stack stage
    start stash state stats step steps stop store stream sum swap swiglu sync synchronize t
    table tables task tasks tensor tensors test text the tile time timer to token tokenize
    tokenizer tokens top topk total train training transfer transform transformer trial trials
    trim type unpack unpad unpermute update upload use v validation value values vector verify
    view vision vocab wait waiting warmup weight weights wgrad window work wrapper write zero
    """.split()  # noqa: SIM905
)
"""What ranges of training loops and of inference engines are made of, besides numbers; no word of
machines, which a host's name may hold.
"""
_LENGTH: Final = 100


@cache
def public_call(text: str) -> str | None:
    """A call of CUDA or HIP without its version; None for any other text."""
    match = _CALL.fullmatch(text)
    if match:
        return match[1]
    return None


def undecorated(text: str) -> str:
    """The text of a range without what PyTorch's emit_nvtx appended."""
    return _DECORATION.sub("", text.strip()) if ", " in text else text.strip()


def public_range(text: str) -> str | None:
    """The text of a known range, without what a profiler appended; None where it may be private."""
    return _if_known(undecorated(text))


@cache
def _if_known(text: str) -> str | None:
    if len(text) > _LENGTH or not text.isascii() or _ADDRESS.search(text):
        return None
    if _OF_FRAMEWORKS.fullmatch(text):
        return text
    words = _WORD.findall(text)
    if any(map(str.isalpha, words)) and all(map(_is_known, words)):
        return text
    return None


def _is_known(word: str) -> bool:
    """Numbers are indexes: with six digits at most none is an address or an account."""
    if word.isdigit():
        return len(word) <= 6
    return word in _MARKS or word.lower() in _WORDS
