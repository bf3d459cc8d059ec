"""The three states of a value: known, `Missing` with its reason and cure, None where it does not
apply.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, NoReturn, Optional, TypeAlias, TypeVar

from msgspec import UnsetType

from traces.frozen import frozen
from traces.texts import Place, Said

T = TypeVar("T")


@frozen
class Missing:
    """One gap of a result.

    `path` is its place in the JSON document (`ranks[0].totals`; a parent covers what is under it),
    `reason` why it could not be told, `cure` what to record or type so that it can. It is false,
    and neither larger nor smaller than anything: what compares it or computes with it gets a
    `TypeError` with both.
    """

    path: Place
    reason: Said
    cure: Said

    def __bool__(self) -> Literal[False]:
        return False

    def _unknown(self, *_: object) -> NoReturn:
        subject = f"{self.path} is not known" if self.path else "this value is not known"
        raise TypeError(f"{subject}: {self.reason}. Cure: {self.cure}")

    __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = _unknown
    __neg__ = __abs__ = __round__ = __int__ = __float__ = _unknown


if TYPE_CHECKING:
    OrMissing: TypeAlias = T | Missing | None
else:  # what JSON holds: a number or null, whose reason stands in `missing`
    OrMissing = Optional


def gap(reason: str, cure: str) -> Missing:
    """A gap of the field that it stands in."""
    return Missing("", reason, cure)


def or_gap(value: T | None, why: Missing) -> T | Missing:
    """The value, or why there is none."""
    if value is None:
        return why
    return value


def unless(why: Missing | None, value: T) -> T | Missing:
    """The value, unless something is why there is none."""
    if why is None:
        return value
    return why


def of_known(of: Callable[..., T], *values: object) -> T | None:
    """What a function gives of values that are all known; None where one is None."""
    if None in values:
        return None
    return of(*values)


def sole(values: Collection[T]) -> T | None:
    """The one value there is; None of several and of none."""
    if len(values) == 1:
        return next(iter(values))
    return None


def known(value: OrMissing[T] | UnsetType) -> T | None:
    """The value where it is known; None where it is missing, absent or does not apply."""
    if isinstance(value, Missing | UnsetType):
        return None
    return value
