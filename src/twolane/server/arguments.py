"""
The arguments of a handler: a JSON Schema out of its parameters, and keyword arguments out of what a client sends.

Type hints go through pydantic in its ordinary mode, which converts where nothing is lost ("5" for an int). Arguments
that no parameter takes are ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, Required, get_args, get_origin

import orjson
from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_json, to_jsonable_python
from typing_extensions import TypedDict

from twolane.protocol.message import encode
from twolane.server.annotations import modern
from twolane.server.completable import Completable
from twolane.server.schema import path_of, validator_of
from twolane.server.typeschema import adapter_of, as_object_schema, is_strict, json_schema_of, plain_header_params

if TYPE_CHECKING:
    from twolane.server.typeschema import Adapter

__all__ = ["ArgumentError", "Arguments", "ParameterInfo", "from_hints", "from_schema", "problems_of"]

_MAX_PROBLEMS = 10
_MAX_COUNTED = 1_000

Bind = Callable[[dict[str, Any]], dict[str, Any]]


class ArgumentError(ValueError):
    """
    The arguments do not fit.

    Args:
        problems: (path, message) pairs; the path is empty for the arguments as a whole.
    """

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems = list(problems)
        lines = (f"{path}: {message}" if path else message for path, message in self.problems)
        super().__init__(f"Invalid arguments: {'; '.join(lines)}")


class ParameterInfo(NamedTuple):
    """One parameter, as prompts list it. ``completer`` proposes its values."""

    name: str
    required: bool
    description: str | None
    title: str | None
    completer: Callable[..., Any] | None


class Arguments(NamedTuple):
    """What was compiled from the parameters of a handler."""

    schema: dict[str, Any]
    parameters: tuple[ParameterInfo, ...]
    bind: Bind


def from_hints(parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any], where: str) -> Arguments:
    """
    Compile *parameters* by their type hints; parameters without one take anything.

    Args:
        parameters: those that the client fills.
        hints: the resolved annotation of each.
        where: how to name the handler in an error.

    Raises:
        TypeError: a type cannot be validated or described.
    """
    fields: dict[str, Any] = {}
    listed: dict[str, Any] = {}
    completers: dict[str, Callable[..., Any] | None] = {}
    for parameter in parameters:
        annotation, default = hints.get(parameter.name, Any), parameter.default
        if isinstance(default, FieldInfo):
            annotation, default = Annotated[annotation, default], parameter.empty
        filled = _fills(annotation, f"{where}: the parameter {parameter.name!r}", default is not parameter.empty)
        key = _wire_name(annotation, parameter.name)
        if default is not parameter.empty:
            listed[key] = default
            if filled:  # Two defaults: that of the signature counts, as in a model.
                annotation = Annotated[annotation, Field(default=default)]
        needed = not filled and default is parameter.empty
        # With a mark of its own: typing caches by ==, and ``int | str`` would come back as another's ``str | int``.
        fields[parameter.name] = (Required if needed else NotRequired)[Annotated[annotation, object()]]
        completers[key] = _completer(annotation)
    adapter, schema = _described(fields, where)
    schema.pop("title", None)
    _list_defaults(schema, listed)
    schema = plain_header_params({"type": "object", "properties": {}, **schema})
    return Arguments(schema, _infos(schema, completers), _binder(adapter))


def _described(fields: dict[str, Any], where: str) -> tuple[Adapter, dict[str, Any]]:
    """Return the adapter and the schema of all parameters together."""
    shape: Any = TypedDict("Arguments", fields)  # type: ignore[misc]
    what = f"{where}: a parameter"
    try:
        adapter = adapter_of(shape, what)
        return adapter, json_schema_of(adapter, "validation", what)
    except TypeError:
        if len(fields) != 1:
            for name, field in fields.items():  # Which one is it?
                _described({name: field}, where)
            raise
        what = f"{where}: the parameter {next(iter(fields))!r}"
        return (adapter := adapter_of(shape, what)), json_schema_of(adapter, "validation", what)


def from_schema(schema: Any, takes: str | None, where: str) -> Arguments:
    """
    Compile an ``input_schema``: the handler's parameter *takes* receives the whole arguments.

    Args:
        schema: a pydantic model, a dataclass, a TypedDict, or a JSON Schema dict, which is listed as it is.
        takes: the parameter; None for a handler that takes none.
        where: how to name the handler in an error.

    Raises:
        TypeError: it is neither.
        ValueError: the JSON Schema is not valid or its root is not of type object.
    """
    what = f"{where}: input_schema"
    if isinstance(schema, Mapping):
        if schema.get("type") != "object":
            raise ValueError(f'{what} must have "type": "object" at its root (S-096), not {schema.get("type")!r}')
        validator = validator_of(schema, what)
        listed = validator.schema()

        def bind_dict(arguments: dict[str, Any]) -> dict[str, Any]:
            problems = validator.problems(arguments)
            if problems:
                raise ArgumentError(problems)
            return {} if takes is None else {takes: arguments}

        return Arguments(listed, _infos(listed, {}), bind_dict)
    adapter = adapter_of(modern(schema), what)
    made = as_object_schema(json_schema_of(adapter, "validation", what))
    if made is None:
        raise TypeError(f"{what} must describe an object: a pydantic model, a dataclass, a TypedDict or a dict")
    made = plain_header_params(made)
    made.pop("title", None)
    validate = _validator(adapter)

    def bind_model(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            value = validate(arguments)
        except ValidationError as exc:
            raise ArgumentError(problems_of(exc)) from None
        return {} if takes is None else {takes: value}

    return Arguments(made, _infos(made, {}), bind_model)


def problems_of(error: ValidationError) -> list[tuple[str, str]]:
    """Return pydantic's findings as (path, message) pairs; at most ten, and without the values themselves."""
    count = error.error_count()
    if count > _MAX_COUNTED:
        return [("", f"{count} values do not fit")]  # To list them all would take seconds.
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [(path_of(detail["loc"]), detail["msg"][:300]) for detail in details[:_MAX_PROBLEMS]]


def _validator(adapter: Adapter) -> Callable[[Any], Any]:
    """Return the validation function. What is strict must be read as JSON: there a date is a string."""
    if not is_strict(adapter.core_schema):
        return adapter.validator.validate_python
    from_json = adapter.validator.validate_json

    def validate(arguments: Any) -> Any:
        try:
            text = to_json(arguments)
        except ValueError:
            raise ArgumentError([("", "they hold text that is not Unicode")]) from None
        return from_json(text)

    return validate


def _binder(adapter: Adapter) -> Bind:
    validate = _validator(adapter)

    def bind(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return validate(arguments)  # type: ignore[no-any-return]
        except ValidationError as exc:
            raise ArgumentError(problems_of(exc)) from None

    return bind


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _fills(annotation: Any, what: str, has_default: bool) -> bool:
    """Tell whether a ``Field(...)`` within *annotation* gives a default."""
    fills = False
    for item in _metadata(annotation):
        if isinstance(item, FieldInfo):
            if item.default_factory is not None:
                if has_default:
                    raise TypeError(f"{what} has a default and a default_factory; one is enough")
                fills = True
            elif item.default is not PydanticUndefined and item.default is not ...:
                fills = True
    return fills


def _wire_name(annotation: Any, name: str) -> str:
    """Return the name of a parameter in the schema: its alias where a ``Field(...)`` gives one."""
    for item in _metadata(annotation):
        if isinstance(item, FieldInfo) and isinstance(alias := item.validation_alias or item.alias, str):
            name = alias
    return name


def _completer(annotation: Any) -> Callable[..., Any] | None:
    return next((item.fn for item in _metadata(annotation) if isinstance(item, Completable)), None)


def _list_defaults(schema: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Add the parameters' defaults to *schema*; one without a JSON form is left out."""
    for name, default in defaults.items():
        listed = schema.get("properties", {}).get(name)
        if listed is not None and "default" not in listed:
            try:
                listed["default"] = orjson.loads(encode(to_jsonable_python(default)))
            except (TypeError, ValueError):
                continue


def _infos(schema: Mapping[str, Any], completers: Mapping[str, Callable[..., Any] | None]) -> tuple[ParameterInfo, ...]:
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    return tuple(
        ParameterInfo(name, name in required, listed.get("description"), listed.get("title"), completers.get(name))
        for name, listed in properties.items()
        if isinstance(listed, Mapping)
    )
