"""The name of a semiring or monoid -> its value, those that users have registered included."""

from __future__ import annotations

from ..compiler.semiring import MONOIDS, SEMIRINGS, Monoid, Semiring
from ..errors import UnsupportedError, suggestion

__all__ = ["Monoid", "Semiring", "monoid", "register_semiring", "semiring"]


def semiring(name: str | Semiring) -> Semiring:
    """The semiring of a name: "plus_times", "min_plus", "any_pair", "lor_land", ...; a Semiring is itself.

    Parameters
    ----------
    name : the name of a semiring, or a Semiring

    Returns
    -------
    Semiring of that name

    Raises UnsupportedError for a name that is not registered.

    Cost: O(1).
    See also: monoid, register_semiring, spgemm.

    Examples
    --------
    >>> ow.semiring("min_plus").name
    'min_plus'
    """
    if isinstance(name, Semiring):
        return name
    known_semiring = SEMIRINGS.get(name)
    if known_semiring is None:
        raise UnsupportedError(
            f"semiring {name!r} is not known\n  supported: {', '.join(sorted(SEMIRINGS))}"
            f"{suggestion(name, SEMIRINGS)}\n  help: Semiring(name, monoid(add), multiply) makes one"
        )
    return known_semiring


def monoid(name: str | Monoid) -> Monoid:
    """The monoid of a name: "plus", "times", "min", "max", "any", "lor", "land", "lxor".

    Parameters
    ----------
    name : the name of a monoid, or a Monoid, which is returned

    Returns
    -------
    Monoid of that name

    Cost: O(1).
    See also: semiring, Monoid.

    Examples
    --------
    >>> ow.monoid("max").identity
    'lowest'
    """
    if isinstance(name, Monoid):
        return name
    known_monoid = MONOIDS.get(name)
    if known_monoid is None:
        raise UnsupportedError(
            f"monoid {name!r} is not known\n  supported: {', '.join(MONOIDS)}{suggestion(name, MONOIDS)}"
            "\n  help: Monoid(name, operation, identity) makes one"
        )
    return known_monoid


def register_semiring(value: Semiring) -> Semiring:
    """Register a semiring under its name; returns it. Raises ValueError where the name is another one's.

    Parameters
    ----------
    value : the semiring; its name is then known to `semiring`

    Returns
    -------
    Semiring, the one registered

    Cost: O(1).
    See also: semiring, Semiring, spgemm.

    Examples
    --------
    >>> widest = ow.register_semiring(ow.Semiring("widest_way", ow.monoid("max"), "min(x, y)"))
    >>> A = ow.asarray([[0, 5.0], [3.0, 0]], format="csr")
    >>> ow.spgemm(A, A, semiring="widest_way").to_numpy()
    array([[  3., -inf],
           [-inf,   3.]])
    """
    known = SEMIRINGS.setdefault(value.name, value)
    if known != value:
        raise ValueError(f"semiring {value.name!r} exists already, as {known.add.operation!r} and {known.multiply!r}")
    return value
