"""Every error we raise, as a tree. A message is one line: what, where, and what to type next.

MoeDiagError
  + UsageError            an option, a selection or a refused overwrite
  |   + EmptySelection    the selection matches nothing; the message names the nearest there is
  + InputError            the input or the machine cannot serve
  |   + TraceNotFound     missing, or not readable
  |   |   + NotShared     readable here, but not where it was to be read
  |   + NotATrace         readable, but no trace
  |   + DamagedTrace      a trace once: truncated, half exported, or being written
  |   + NsysUnavailable   a report needs nsys, and none is here or it is too old
  |   + ExportFailed      nsys ran and could not export
  |   + NotAConfiguration no configuration of a run, or too large, broken, binary (traces.settings)
  |   + LogNotFound, NotALog, DamagedLog   of a training log (traces.training_log)
  |   + ProcessEnded      one of several processes was ended from outside
  |   + OutOfMemory       it takes more memory than there is, or than --max-memory gives
  |   + OutOfTime         it takes longer than --timeout gives
  |   + UnpacksTooFar     a compressed file that is far larger unpacked than any recording
  |   + ClusterUnavailable  no scheduler, no worker, or other versions there
  |   + UnlikeRuns        recordings of several runs where those of one are asked for
  |   + OutputNotWritable the result cannot be put where it was asked for
  + NothingToDiagnose     read, but neither kernels nor graph rows

Only the door (`diagnoser.cli`) turns them into exit codes.
"""


class MoeDiagError(Exception):
    """Root of what a user can cause. `str(error)` is the one line to print."""


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
    """The input takes more memory than there is, or than the user gives."""


class OutOfTime(InputError):
    """The input takes longer than the user gives."""


class UnpacksTooFar(InputError):
    """A compressed file is far larger unpacked than any of its kind: it may have been made to fill memory."""


class ClusterUnavailable(InputError):
    """The cluster that was named cannot do the work."""


class OutputNotWritable(InputError):
    """The result cannot be written where it was asked for."""


class NothingToDiagnose(MoeDiagError):
    """The trace was read and holds neither kernels nor graph rows."""
