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
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python
from typing_extensions import TypedDict

from twolane.server.annotations import modern
from twolane.server.completable import Completable
from twolane.server.schema import validator_of
from twolane.server.typeschema import adapter_of, as_object_schema, is_strict, json_schema_of, plain_header_params

if TYPE_CHECKING:
    from twolane.server.typeschema import Adapter

__all__ = ["ArgumentError", "Arguments", "ParameterInfo", "from_hints", "from_schema", "problems_of"]

_MAX_PROBLEMS = 10

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
    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    for parameter in parameters:
        annotation = hints.get(parameter.name, Any)
        default = parameter.default
        if isinstance(default, FieldInfo):
            annotation = Annotated[annotation, default]
            default = inspect.Parameter.empty
        given = _field_default(annotation, factories, parameter.name)
        if given is not PydanticUndefined and default is inspect.Parameter.empty:
            defaults[parameter.name] = given
        needed = default is inspect.Parameter.empty and given is PydanticUndefined and parameter.name not in factories
        fields[parameter.name] = (Required if needed else NotRequired)[annotation]
    shape: Any = TypedDict("Arguments", fields)  # type: ignore[misc]
    what = f"{where}: a parameter"
    adapter = adapter_of(shape, what)
    schema = json_schema_of(adapter, "validation", what)
    schema.pop("title", None)
    _list_defaults(schema, parameters, defaults)
    schema = plain_header_params({"type": "object", "properties": {}, **schema})
    infos = _infos(schema, {name: _completer(hint) for name, hint in hints.items()})
    return Arguments(schema, infos, _binder(adapter, defaults, factories))


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
        listed = dict(schema)
        if listed.get("type") != "object":
            raise ValueError(f'{what} must have "type": "object" at its root (S-096), not {listed.get("type")!r}')
        validator = validator_of(listed, what)

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
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [(".".join(map(str, detail["loc"])), detail["msg"][:300]) for detail in details[:_MAX_PROBLEMS]]


def _validator(adapter: Adapter) -> Callable[[Any], Any]:
    """Return the validation function. What is strict must be read as JSON: there a date is a string."""
    if is_strict(adapter.core_schema):
        from_json = adapter.validator.validate_json
        return lambda arguments: from_json(orjson.dumps(arguments))
    return adapter.validator.validate_python


def _binder(adapter: Adapter, defaults: dict[str, Any], factories: dict[str, Callable[[], Any]]) -> Bind:
    validate = _validator(adapter)

    def bind(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return validate(arguments)  # type: ignore[no-any-return]
        except ValidationError as exc:
            raise ArgumentError(problems_of(exc)) from None

    if not defaults and not factories:
        return bind

    def bind_filling(arguments: dict[str, Any]) -> dict[str, Any]:
        made = {name: factory() for name, factory in factories.items() if name not in arguments}
        return {**defaults, **made, **bind(arguments)}

    return bind_filling


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _field_default(annotation: Any, factories: dict[str, Callable[[], Any]], name: str) -> Any:
    """Return the default that a ``Field(...)`` within *annotation* gives."""
    for item in _metadata(annotation):
        if isinstance(item, FieldInfo):
            if item.default_factory is not None:
                factories[name] = item.default_factory  # type: ignore[assignment]
            elif item.default is not PydanticUndefined and item.default is not ...:
                return item.default
    return PydanticUndefined


def _completer(annotation: Any) -> Callable[..., Any] | None:
    return next((item.fn for item in _metadata(annotation) if isinstance(item, Completable)), None)


def _list_defaults(
    schema: dict[str, Any], parameters: Iterable[inspect.Parameter], defaults: Mapping[str, Any]
) -> None:
    """Add the parameters' defaults to *schema*; one without a JSON form is left out."""
    for parameter in parameters:
        value = defaults.get(parameter.name, parameter.default)
        listed = schema.get("properties", {}).get(parameter.name)
        if listed is None or value is inspect.Parameter.empty or isinstance(value, FieldInfo) or "default" in listed:
            continue
        try:
            listed["default"] = orjson.loads(orjson.dumps(to_jsonable_python(value)))
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
