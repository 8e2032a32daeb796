"""Arguments of public functions, held against their annotations before anything is done with them."""

import difflib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, InstanceOf, TypeAdapter, ValidationError

from memcycle.core.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_ANY_CLASS = ConfigDict(arbitrary_types_allowed=True)
_SHOWN = 42
"""Characters of a value that an error shows at most."""


def checked(function: F) -> F:
    """The function, refusing arguments that its signature does not allow: missing, too many, of other types.

    An annotation in quotes names what is loaded only where it is needed: that is left to the function.

    Raises:
        BadInput: names the function, the argument, and what it may be.
    """
    signature = inspect.signature(function)
    adapters = functools.cache(lambda: dict(_adapters(signature)))

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            names = [name for name in signature.parameters if name not in ("self", "cls")]
            strange = next((name for name in kwargs if name not in names), None)
            why = f"{error}; it takes {', '.join(names)}" if strange is None else unknown(strange, names)
            raise BadInput(f"{function.__name__}: {why}") from None
        for name, value in given.items():
            if name in adapters() and value is not signature.parameters[name].default:
                _check(f"{function.__name__}: {name}", adapters()[name], value)

    @functools.wraps(function)
    async def arun(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return await function(*args, **kwargs)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return function(*args, **kwargs)

    return cast("F", arun if inspect.iscoroutinefunction(function) else run)


def checked_methods(cls: C) -> C:
    """The class with its public methods `checked`, those that are awaited and class methods too."""
    for name, one in list(vars(cls).items()):
        if isinstance(one, classmethod) and not name.startswith("_"):
            setattr(cls, name, classmethod(checked(one.__func__)))
        elif inspect.isfunction(one) and not name.startswith("_"):
            setattr(cls, name, checked(one))
    return cls


def unknown(name: str, known: Iterable[str]) -> str:
    """What is said of a name that is none of those that are known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"no {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}")


def _adapters(signature: inspect.Signature) -> Iterator[tuple[str, TypeAdapter[Any]]]:
    for name, parameter in signature.parameters.items():
        kind, several = parameter.annotation, (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if kind not in (parameter.empty, Any) and not isinstance(kind, str) and parameter.kind not in several:
            yield name, TypeAdapter(_instances(kind), config=_ANY_CLASS)


def _instances(kind: Any) -> Any:
    """The annotation, its classes as what must be an instance: nothing is made of a dict on the way."""
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(map(_instances, get_args(kind)))]  # noqa: UP007 - of any number
    if getattr(kind, "_is_protocol", False):
        return Any
    ours = isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))
    instance_of: Any = InstanceOf
    return instance_of[kind] if ours else kind


def _check(place: str, adapter: TypeAdapter[Any], value: object) -> None:
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError as error:
        # Half a surrogate pair is no wrong type: words are cleaned, ids looked up, by who takes them.
        found = [one for one in error.errors(include_url=False) if one["type"] != "string_unicode"]
        if not found:
            return
        at = "".join(f"[{part}]" for part in found[0]["loc"] if isinstance(part, int))
        wanted = " or ".join(dict.fromkeys(one["msg"].removeprefix("Input should be ") for one in found))
        if found[0]["type"] == "sequence_str":
            wanted = "a list"
        raise BadInput(f"{place}{at} must be {wanted}, not {_described(found[0]['input'])}") from None


def _described(value: object) -> str:
    plain = isinstance(value, str | int | float | bool | None) and len(repr(value)) <= _SHOWN
    return repr(value) if plain else f"a {type(value).__name__}"
