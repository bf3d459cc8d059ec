"""Versions that a log prints, by package.

Megatron-LM prints `> PyTorch version ... 2.9.0`, `> Megatron-Core version`, `> Transformer Engine version`
(pretrain_gpt.py, core_v0.19.0 to d98e8a64); NCCL_DEBUG=VERSION prints `NCCL version 2.29.3+cuda13.0`;
NVIDIA's containers begin with `NVIDIA Release 26.02` and `PyTorch Version 2.9.0a0`; asserts name Transformer
Engine's version; `pip freeze` prints `megatron-core==0.16.1`; a traceback's paths name Python's.
"""

import re
from typing import Final

WORDS: Final = (b"ersion", b"NVIDIA Release", b"==")
_VERSION: Final = r"([0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:(?:a|b|rc|\.dev|\.post)[0-9]{1,4})*)"
# Only what cannot be a name: a build's local part is left out, but for CUDA's. First a literal, to be quick.
_SAID: Final = (
    ("PyTorch", "torch", re.compile(rf"PyTorch [Vv]ersion[ .:]+{_VERSION}")),
    ("+cu", "cuda", re.compile(r"PyTorch [Vv]ersion[ .:]+[0-9][0-9a-z.]*\+cu([0-9]{3})\b")),
    ("Megatron-Core", "core", re.compile(rf"Megatron-Core version[ .:]+{_VERSION}")),
    ("Bridge version", "bridge", re.compile(rf"Megatron[- ]Bridge version[ .:]+{_VERSION}")),
    ("E version", "te", re.compile(rf"\bTE version[ .:]+{_VERSION}")),
    ("Engine version", "te", re.compile(rf"Transformer ?Engine version[ .:]+{_VERSION}")),
    ("engine>=", "te", re.compile(rf"transformer-engine>=.{{1,100}}but your version is {_VERSION}")),
    ("NCCL version", "nccl", re.compile(rf"NCCL version {_VERSION}")),
    ("+cuda", "cuda", re.compile(r"NCCL version [0-9.]+\+cuda([0-9]{1,2}\.[0-9]{1,2})\b")),
    ("NVIDIA Release", "container", re.compile(r"NVIDIA Release ([0-9]{2}\.[0-9]{2}(?:\.[0-9]{2})?)\b")),
    ("core==", "core", re.compile(rf"(?:^|\s)megatron[-_]core=={_VERSION}(?=[+\s]|$)")),
    ("bridge==", "bridge", re.compile(rf"(?:^|\s)megatron[-_]bridge=={_VERSION}(?=[+\s]|$)")),
    ("engine==", "te", re.compile(rf"(?:^|\s)transformer[-_]engine=={_VERSION}(?=[+\s]|$)")),
    ("torch==", "torch", re.compile(rf"(?:^|\s)torch=={_VERSION}(?=[+\s]|$)")),
)
_PYTHON: Final = re.compile(r"/python(3\.[0-9]{1,2})/")


def versions_in(text: str) -> dict[str, str]:
    """Versions that a line says, by package."""
    told: dict[str, str] = {}
    for literal, package, pattern in _SAID:
        if literal in text and (found := pattern.search(text)):
            told.setdefault(package, _dotted(found[1]))
    return told


def python_of(frame: str) -> str | None:
    """Python's version by a path of its library, as a traceback shows it."""
    found = _PYTHON.search(frame)
    return None if found is None else found[1]


def _dotted(version: str) -> str:
    """PyTorch writes CUDA 13.0 as `cu130`."""
    return version if "." in version else f"{version[:-1]}.{version[-1]}"
