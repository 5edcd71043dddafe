"""The arguments of a handler: from a call to JSON, and back by the annotations of its parameters."""

from __future__ import annotations

import base64
import binascii
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import logging
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Union

from ._job import Job, _CurrentJob

Convert = Callable[[Any, str], Any]
_log = logging.getLogger("holdfast_queue")


class Misfit(ValueError):
    """The payload does not fit the handler. The job is dead: another attempt would not help."""


# ---- to JSON ----

def _plain(value: Any) -> Any:
    """A value of a type that JSON does not know."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if hasattr(value, "__struct_fields__"):
        import msgspec
        return msgspec.to_builtins(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset, collections.abc.ValuesView, collections.abc.KeysView)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"expected a value that JSON can express, found {type(value).__name__}")


_encoder = json.JSONEncoder(default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _make_encode() -> Callable[[Any], str]:
    """JSONEncoder.encode makes a new encoder in C for each value, which takes most of its time."""
    try:
        from json import encoder
        make: Any = encoder.c_make_encoder  # type: ignore[attr-defined]
        quote: Any = encoder.encode_basestring
        chunks = make(None, _plain, quote, None, ":", ",", False, False, False)

        def encode(value: Any) -> str:
            return "".join(chunks(value, 0))

        if encode({"a": [1, 2.5, "é"], "b": None}) == '{"a":[1,2.5,"é"],"b":null}':
            return encode
    except (ImportError, AttributeError, TypeError):  # another implementation of Python
        pass
    return _encoder.encode


_encode = _make_encode()


def to_json(value: Any) -> bytes:
    try:
        return _encode(value).encode()
    except RecursionError:
        raise ValueError("expected a value that JSON can express, found one that contains itself") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"expected text that UTF-8 can express, found {error.object[error.start]!r}") from None


# ---- from JSON ----

_decode = json.JSONDecoder().decode

def _found(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."


def _misfit(path: str, expected: str, value: Any) -> Misfit:
    return Misfit(f"payload: expected {expected} as '{path}', found {_found(value)}")


def _exactly(kind: type, expected: str) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if type(value) is not kind:
            raise _misfit(path, expected, value)
        return value
    return convert


def _float(value: Any, path: str) -> float:
    if type(value) is not float and type(value) is not int:
        raise _misfit(path, "a number", value)
    return float(value)


def _int(value: Any, path: str) -> int:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise _misfit(path, "a whole number", value)
    return value


def _none(value: Any, path: str) -> None:
    if value is not None:
        raise _misfit(path, "null", value)


def _any(value: Any, path: str) -> Any:
    return value


def _by(make: Callable[[str], Any], expected: str) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if type(value) is not str:
            raise _misfit(path, expected, value)
        try:
            return make(value)
        except (ValueError, ArithmeticError):
            raise _misfit(path, expected, value) from None
    return convert


def _datetime(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _timedelta(value: Any, path: str) -> datetime.timedelta:
    if type(value) is not float and type(value) is not int:
        raise _misfit(path, "a number of seconds", value)
    return datetime.timedelta(seconds=value)


def _decimal(value: Any, path: str) -> decimal.Decimal:
    if type(value) is int:
        return decimal.Decimal(value)
    return typing.cast(decimal.Decimal, _by(decimal.Decimal, "a decimal number as text")(value, path))


_SIMPLE: dict[Any, Convert] = {
    Any: _any, object: _any, inspect.Parameter.empty: _any, None: _none, type(None): _none,
    str: _exactly(str, "a text"), bool: _exactly(bool, "true or false"), int: _int, float: _float,
    dict: _exactly(dict, "an object"), list: _exactly(list, "a list"),
    datetime.datetime: _by(_datetime, "a time in ISO 8601"),
    datetime.date: _by(datetime.date.fromisoformat, "a date in ISO 8601"),
    datetime.time: _by(datetime.time.fromisoformat, "a time of day in ISO 8601"),
    datetime.timedelta: _timedelta, decimal.Decimal: _decimal,
    uuid.UUID: _by(uuid.UUID, "a UUID"), bytes: _by(_bytes, "base64"),
    pathlib.Path: _by(pathlib.Path, "a path"), pathlib.PurePath: _by(pathlib.PurePath, "a path"),
}
_SEQUENCES: dict[Any, Callable[..., Any]] = {
    list: list, set: set, frozenset: frozenset, collections.abc.Sequence: list,
    collections.abc.MutableSequence: list, collections.abc.Iterable: list, collections.abc.Collection: list,
    collections.abc.Set: frozenset, collections.abc.MutableSet: set,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _owner(annotation: Any) -> str | None:
    """pydantic or msgspec, if a part of the annotation is theirs."""
    if isinstance(annotation, type):
        pydantic = sys.modules.get("pydantic")
        if pydantic is not None and issubclass(annotation, pydantic.BaseModel) \
                or hasattr(annotation, "__pydantic_validator__"):
            return "pydantic"
        if hasattr(annotation, "__struct_fields__"):
            return "msgspec"
    for part in getattr(annotation, "__metadata__", ()):  # Annotated[int, Field(gt=0)]
        package = type(part).__module__.split(".")[0]
        if package in ("pydantic", "msgspec"):
            return package
    for part in typing.get_args(annotation):
        owner = _owner(part)
        if owner is not None:
            return owner
    return None


def _pydantic(annotation: Any) -> Convert:
    import pydantic
    adapter: Any = pydantic.TypeAdapter(annotation)

    def convert(value: Any, path: str) -> Any:
        try:
            return adapter.validate_json(json.dumps(value))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join([path, *map(str, first["loc"])])
            raise Misfit(f"payload: '{at}': {first['msg']}, found {_found(first['input'])}") from None
    return convert


def _msgspec(annotation: Any) -> Convert:
    import msgspec

    def convert(value: Any, path: str) -> Any:
        try:
            return msgspec.convert(value, annotation)
        except msgspec.ValidationError as error:
            raise Misfit(f"payload: '{path}': {error}") from None
    return convert


def _union(members: tuple[Any, ...]) -> Convert:
    converts = [converter(member) for member in members]

    def convert(value: Any, path: str) -> Any:
        first: Misfit | None = None
        for kind, each in zip(members, converts):
            if kind is type(value):
                return each(value, path)
        for each in converts:
            try:
                return each(value, path)
            except Misfit as misfit:
                first = first or misfit
        names = " or ".join("null" if m is type(None) else getattr(m, "__name__", str(m)) for m in members)
        raise _misfit(path, names, value)
    return convert


def _literal(values: tuple[Any, ...]) -> Convert:
    def convert(value: Any, path: str) -> Any:
        for known in values:
            if type(known) is type(value) and known == value:
                return known
        raise _misfit(path, " or ".join(map(_found, values)), value)
    return convert


def _enum(kind: type[enum.Enum]) -> Convert:
    by_value = {_plain_enum(member.value): member for member in kind}

    def convert(value: Any, path: str) -> Any:
        try:
            return by_value[value]
        except (KeyError, TypeError):
            raise _misfit(path, " or ".join(map(_found, by_value)), value) from None
    return convert


def _plain_enum(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _sequence(make: Callable[..., Any], item: Any) -> Convert:
    each = converter(item)

    def convert(value: Any, path: str) -> Any:
        if type(value) is not list:
            raise _misfit(path, "a list", value)
        return make([each(part, f"{path}[{i}]") for i, part in enumerate(value)])
    return convert


def _tuple(parts: tuple[Any, ...]) -> Convert:
    if len(parts) == 2 and parts[1] is ...:
        return _sequence(tuple, parts[0])
    converts = [converter(part) for part in parts]

    def convert(value: Any, path: str) -> Any:
        if type(value) is not list or len(value) != len(converts):
            raise _misfit(path, f"a list of {len(converts)}", value)
        return tuple(each(part, f"{path}[{i}]") for i, (each, part) in enumerate(zip(converts, value)))
    return convert


def _mapping(key: Any, item: Any) -> Convert:
    name, each = converter(key), converter(item)

    def name_of(text: str, path: str) -> Any:
        if key is int or key is float:
            try:
                return key(text)
            except ValueError:
                raise _misfit(path, f"a name that is a number ({key.__name__})", text) from None
        return name(text, path)

    def convert(value: Any, path: str) -> Any:
        if type(value) is not dict:
            raise _misfit(path, "an object", value)
        return {name_of(k, path): each(v, f"{path}.{k}") for k, v in value.items()}
    return convert


def _fields(make: Callable[..., Any], hints: dict[str, Any], required: set[str]) -> Convert:
    lazy: dict[str, Convert] = {}

    def convert(value: Any, path: str) -> Any:
        if type(value) is not dict:
            raise _misfit(path, "an object", value)
        if not lazy:
            lazy.update({name: converter(hint) for name, hint in hints.items()})
        for name in required:
            if name not in value:
                raise Misfit(f"payload: missing '{path}.{name}'")
        return make(**{name: lazy[name](part, f"{path}.{name}") for name, part in value.items() if name in lazy})
    return convert


def _dataclass(kind: Any) -> Convert:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    required = {field.name for field in fields
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING}
    return _fields(kind, {field.name: hints[field.name] for field in fields}, required)


def converter(annotation: Any) -> Convert:
    """What makes an argument of this annotation from a value of JSON."""
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:  # an annotation that cannot be hashed
        simple = None
    if simple is not None:
        return simple
    owner = _owner(annotation)
    if owner is not None:
        return _pydantic(annotation) if owner == "pydantic" else _msgspec(annotation)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None and getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly") \
            or hasattr(annotation, "__metadata__"):
        return converter(parts[0])
    if origin is Union or origin is types.UnionType:
        return _union(parts)
    if origin is typing.Literal:
        return _literal(parts)
    if origin is tuple or annotation is tuple:
        return _tuple(parts or (Any, ...))
    kind = origin or annotation
    if kind in _SEQUENCES:
        return _sequence(_SEQUENCES[kind], parts[0] if parts else Any)
    if kind in _MAPPINGS:
        return _mapping(*(parts or (str, Any)))
    if isinstance(annotation, typing.NewType):
        return converter(annotation.__supertype__)
    if hasattr(annotation, "__value__"):  # the statement `type`
        return converter(annotation.__value__)
    if isinstance(annotation, typing.TypeVar):
        return converter(annotation.__bound__) if annotation.__bound__ is not None else _any
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return _enum(annotation)
        if dataclasses.is_dataclass(annotation):
            return _dataclass(annotation)
        if typing.is_typeddict(annotation):
            hints = typing.get_type_hints(annotation, include_extras=False)
            return _fields(dict, hints, set(getattr(annotation, "__required_keys__", hints)))
    raise TypeError(f"expected an annotation whose values JSON can express, found {annotation!r}")


# ---- the parameters of a function ----

class Params:
    """The parameters of a handler, but for the job that it runs."""

    def __init__(self, fn: Callable[..., Any], type: str):
        self.type = type
        self.fn = fn
        self.names: list[str] = []
        self.required: set[str] = set()
        self.job_name: str | None = None
        self.job_first = False
        self.extra = False
        signature = inspect.signature(fn)
        hints = self._hints()
        for place, parameter in enumerate(signature.parameters.values()):
            name, kind = parameter.name, parameter.kind
            hint = hints.get(name, parameter.annotation)
            if hint is Job or isinstance(parameter.default, _CurrentJob) \
                    or (isinstance(hint, str) and hint.split(".")[-1] == "Job") \
                    or (name == "job" and hint is parameter.empty):
                self.job_name, self.job_first = name, place == 0
            elif kind is parameter.VAR_KEYWORD:
                self.extra = True
            elif kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise TypeError(f"{type}: expected parameters with names, found '{parameter}': a payload is one "
                                "object with named members")
            else:
                self.names.append(name)
                if parameter.default is parameter.empty:
                    self.required.add(name)
        self.known = frozenset(self.names)
        self._positional = [p.name for p in signature.parameters.values()
                            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != self.job_name]
        self._converts: dict[str, Convert] | None = None
        self._ignored: set[str] = set()

    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self.fn, include_extras=True)
        except Exception:  # a name that exists later, or for type checkers only
            return {}

    def pack(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The payload of a call, which must have the arguments of the function."""
        if args:
            if len(args) > len(self._positional):
                raise TypeError(f"{self.type}: expected at most {len(self._positional)} positional arguments, "
                                f"found {len(args)}")
            packed = dict(zip(self._positional, args))
            for name in kwargs:
                if name in packed:
                    raise TypeError(f"{self.type}: got two values for the argument '{name}'")
            packed.update(kwargs)
        else:
            packed = kwargs
        if packed.keys() != self.known:
            for name in self.required:
                if name not in packed:
                    raise TypeError(f"{self.type}: missing the argument '{name}'")
            if not self.extra or self.job_name in packed:
                for name in packed:
                    if name not in self.known and (not self.extra or name == self.job_name):
                        raise TypeError(f"{self.type}: unexpected argument '{name}'")
        return packed

    def prepare(self) -> None:
        """Reads the annotations; a TypeError names one whose values cannot come from JSON."""
        if self._converts is not None:
            return
        try:
            hints = typing.get_type_hints(self.fn, include_extras=True)
        except NameError as error:
            raise TypeError(f"{self.type}: an annotation cannot be read: {error}") from None
        converts = {}
        for name in self.names:
            try:
                converts[name] = converter(hints.get(name, inspect.Parameter.empty))
            except TypeError as error:
                raise TypeError(f"{self.type}: parameter '{name}': {error}") from None
        self._converts = converts

    def unpack(self, payload: bytes, job: Job | None) -> dict[str, Any]:
        """The arguments for the function; Misfit if they do not fit it."""
        if self._converts is None:
            self.prepare()
        converts = self._converts
        assert converts is not None
        if not self.names and not self.extra:  # it reads job.payload itself, or wants nothing
            return {} if self.job_name is None else {self.job_name: job}
        if payload:
            try:
                members = _decode(payload.decode())
            except ValueError as error:
                raise Misfit(f"payload: expected JSON, found {len(payload)} bytes of something else: {error}") from None
        else:
            members = {}
        if type(members) is not dict:
            raise Misfit(f"payload: expected an object with named members, found {_found(members)}")
        out = {}
        for name, value in members.items():
            convert = converts.get(name)
            if convert is not None:
                out[name] = convert(value, name)
            elif self.extra and name != self.job_name:
                out[name] = value
            elif name not in self._ignored:  # a newer producer may send more than this handler knows
                self._ignored.add(name)
                _log.warning("%s: the payload has a member '%s' that the handler does not take", self.type, name)
        if not self.required <= out.keys():
            raise Misfit("payload: missing " + ", ".join(f"'{n}'" for n in self.names
                                                         if n in self.required and n not in out))
        if self.job_name is not None:
            out[self.job_name] = job
        return out
