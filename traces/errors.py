"""Every error we raise, as a tree. A message is one line: what, where, and what to type next.

Those of configurations and training logs stand beside their readers. Only the door
(`diagnoser.cli`) turns errors into exit codes.
"""

import os
import resource

from traces.spelling import one_line


class MoeDiagError(Exception):
    """Root of what a user can cause. `str(error)` is the one line to print, whatever the message
    quotes.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class UsageError(MoeDiagError):
    """The command line asks for something that cannot be."""


class EmptySelection(UsageError):
    """A selection matches nothing in this trace."""


class InputError(MoeDiagError):
    """The input, or what is needed to read it, is not usable."""


class TraceNotFound(InputError):
    """The path names nothing readable."""


class NotShared(TraceNotFound):
    """The file is here, and a worker of the cluster cannot read it."""


class NotATrace(InputError):
    """The file is readable and no trace that we know."""


class NotAResult(InputError):
    """The file is none of our results, or of a version that this one does not know."""


class NotASnapshot(InputError):
    """The file is no memory snapshot of PyTorch, or not a plain one."""


class NotAWitness(InputError):
    """The file is neither a dump of PyTorch's Flight Recorder nor of NCCL Inspector, or not a plain
    one.
    """


class DamagedTrace(InputError):
    """The file was a trace; now it is truncated, half exported or being written."""


class UnlikeRuns(InputError):
    """The recordings are of several runs, of which one verdict would be of none."""


class NsysUnavailable(InputError):
    """A report needs an nsys that is absent or too old."""


class ExportFailed(InputError):
    """nsys was run and gave no usable export."""


class ProcessEnded(InputError):
    """One of the processes that work at once was ended from outside, as where memory runs out."""


class OutOfMemory(InputError):
    """The input takes more memory than there is, or than this process may take."""


class UnpacksTooFar(InputError):
    """A compressed file is far larger unpacked than any of its kind: it may have been made to fill
    memory.
    """


class ClusterUnavailable(InputError):
    """The cluster that was named cannot do the work."""


class OutputNotWritable(InputError):
    """The result cannot be written where it was asked for."""


class NothingToDiagnose(MoeDiagError):
    """The trace was read and holds neither kernels nor graph rows."""


def reason_of(error: OSError | ValueError) -> str:
    """What went wrong, without the file: in the system's words where it has any."""
    if errno := getattr(error, "errno", None):
        return os.strerror(errno)
    return str(error)


def out_of_memory(what: str) -> OutOfMemory:
    """What is said of work that needed more: all there is, or what the system gives this
    process.
    """
    bound = resource.getrlimit(resource.RLIMIT_DATA)[0]
    there_is = f"the {bound >> 20} MB allowed" if bound > 0 else "is available"
    return OutOfMemory(
        f"{what} needs more memory than {there_is}. Read one trace at a time with --jobs 1, "
        "or use a machine with more memory."
    )
