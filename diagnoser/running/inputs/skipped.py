"""Why a file was left out while others go on, in the words of a warning."""

from typing import Final

from traces import errors

NO_WORK: Final = "neither kernels nor graph rows"
_SKIPPED: Final = {
    errors.NotShared: "no worker of the cluster can read it",
    errors.TraceNotFound: "it cannot be read",
    errors.NotATrace: "it is no trace",
    errors.DamagedTrace: "it is damaged",
    errors.NsysUnavailable: "it needs an nsys that is not here",
    errors.ExportFailed: "nsys could not export it",
    errors.OutputNotWritable: "its export could not be kept",
    errors.OutOfMemory: "it needs more memory than is available",
    errors.UnpacksTooFar: "it unpacks to far more than any recording",
    errors.ProcessEnded: "the process that read it was ended from outside",
    errors.NothingToDiagnose: f"it has {NO_WORK}",
}
"""What a document says of a trace that failed: never the error's own words, which may hold paths.

A kind stands before the kind that it is one of.
"""


def why_skipped(error: Exception) -> str:
    return next(
        (why for kind, why in _SKIPPED.items() if isinstance(error, kind)), "it could not be used"
    )
