"""`python -m` puts the working folder first where Python looks for code, and that may be a
stranger's folder.

It goes before anything else of ours is loaded. Nothing is imported here that could lie there
itself.
"""

import os
import sys


def leave_working_folder(home: str) -> None:
    """Have no code taken from the working folder where `python -m` of our own package put it on the
    path.

    `home` is the folder of our packages. Where it is the working folder, as in a checkout, these
    alone are taken from it, and then it goes last. Raises `ImportError` where Python took a module
    from another working folder before it came to us.
    """
    if sys.argv[:1] != ["-m"] or sys.flags.safe_path or not _names_us():
        return
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib could lie there
    except OSError:  # it is gone, and Python did not put it there
        return
    if sys.path[:1] != [here]:
        return
    if here == home:
        import heuristics  # noqa: F401 - the first file of none has any code
        import reports  # noqa: F401
        import traces  # noqa: F401

        sys.path.append(sys.path.pop(0))
        return
    del sys.path[0]
    for name, module in [*sys.modules.items()]:
        if os.path.dirname(getattr(module, "__file__", None) or "") == here:  # noqa: PTH120
            raise ImportError(
                f"Python took its module {name!r} from the working folder, {here}, before moe-diag "
                "began. Type moe-diag in place of python -m, or start it in another folder."
            )


def _names_us() -> bool:
    """Whether the module that `python -m` was asked for is ours: the word before its arguments."""
    word = sys.orig_argv[-len(sys.argv)]
    module = word.partition("m")[2] if word.startswith("-") else word  # -mdiagnoser, -Bmdiagnoser
    return module.partition(".")[0] in ("moe_diag", __name__.partition(".")[0])
