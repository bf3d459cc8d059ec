"""The only texts of an export that leave it besides kernel and NVTX names, and only as we know
them.

An export holds the whole environment, command lines, host and user names. So nothing is passed on
because it stood in some column: a version must be digits and dots, a GPU name must be built of
known words, and a diagnostic is answered in our own words.
"""

from typing import Final

from traces.names.gpus import product_named
from traces.patterns import compiled, compiled_rows, first_found

_VERSION: Final = compiled(r"\d{1,5}(?:\.\d{1,6}){1,4}")

_LONGEST_NAME: Final = 64
_GPU_NAME: Final = compiled(
    r"(?:(?:NVIDIA |Tesla |Quadro |GeForce |TITAN |GRID |RTX |GTX |PRO )+"
    r"(?:[A-Z]{0,2}\d{1,4}[A-Z]{0,2}|V|Xp?|RTX|Graphics Device|Thor|Orin)"
    r"|(?:[ABHLPTVKM]|G[BH])\d{2,3}[A-Z]{0,2}"
    r"|AMD (?:Instinct |Radeon )+(?:(?:MI|PRO |RX |W|VII)?\d{2,4}[A-Z]{0,3}))"
    r"(?:[ -](?:\d{1,3}GB|SXM\d?|PCI[eE]|NVL\d{0,2}|HBM\d[ea]?|Ti|SUPER|Super|D|Ada|Generation|"
    r"Blackwell|"
    r"Server|Workstation|Max-Q|Edition|Laptop|GPU|Superchip|AC|LC|S|Q|MIG|\d{1,2}g\.\d{1,3}gb|PG\d{3}|"
    r"\d{3,4}))*"
)
"""Words NVIDIA and AMD build their product names from (CUDA device names of Kepler to Blackwell;
HIP's)."""

_DIAGNOSTICS: Final = compiled_rows(
    ("a process recorded no CUDA events", r"No CUDA events collected"),
    (
        "CUDA tracing may not have started in a process",
        r"CUDA profiling might have not been started correctly",
    ),
    (
        "CUDA was traced by instrumentation, not by hardware",
        r"CUDA hardware tracing is not supported",
    ),
    ("some NVTX events may be missing", r"[Nn]ot all NVTX events might have been collected"),
    ("some CUDA events may be missing", r"[Nn]ot all CUDA events might have been collected"),
    ("CUPTI, which records the CUDA activity, reported an error", r"CUPTI_ERROR_|CUPTI .*[Ee]rror"),
    ("the profiler lost events", r"[Bb]uffer overflow|dropped|were lost|lost events"),
    ("GPU counters were not permitted", r"[Ii]nsufficient privilege|ERR_NVGPUCTRPERM"),
)


def version(text: object) -> str | None:
    """A dotted version, or None where the text is anything else."""
    if isinstance(text, str) and _VERSION.fullmatch(text):
        return text
    return None


def gpu_name(text: object) -> str | None:
    """A GPU's product name; where it has a word that no such name has, the product alone, None for
    none.
    """
    if not isinstance(text, str) or len(text) >= _LONGEST_NAME:
        return None
    if _GPU_NAME.fullmatch(text):
        return text
    product = product_named(text)
    if product:
        return product.name
    return None


def diagnostic(text: object) -> str | None:
    """What a stored diagnostic of nsys means, in our words; None where we do not know it."""
    return first_found(_DIAGNOSTICS, text if isinstance(text, str) else "")
