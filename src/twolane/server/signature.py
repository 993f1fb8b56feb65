"""
Functions as handlers: compiled once, shared by every server that registers the same function again.

A factory defines its functions anew for each request, so the cache is keyed by their code. Code alone would leak: two
tenants' functions share code and differ in a default or an enum, and all functions of one decorator share its wrapper.
So each hit compares what the schema was made from: defaults, annotations and what their names meant, docstring, and
what partials and bound methods filled in.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, cleandoc
from types import FunctionType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import orjson

from twolane.protocol.headers import HeaderParam, header_params
from twolane.server.annotations import Names, resolve
from twolane.server.arguments import Arguments, Bind, ParameterInfo, from_hints, from_schema
from twolane.server.callables import Anatomy, dissect, parameters_of
from twolane.server.context import Context
from twolane.server.equality import same, snapshot
from twolane.server.output import Result, compile_output

__all__ = ["MAX_VARIANTS", "Compiled", "Kind", "compile_handler"]

_log = logging.getLogger("twolane.server")

Kind = Literal["tool", "prompt", "resource"]

#: Different compiled forms kept for one piece of code; a factory that needs more builds its types for each request.
MAX_VARIANTS = 32
_MAX_CODES = 4096

_CONSTANTS = frozenset((str, int, float, bool, bytes, type(None)))


class Compiled:
    """
    A handler's signature, compiled. Immutable, and shared between servers: it never refers to the handler itself.

    ``bind`` turns arguments into keyword arguments and raises ``ArgumentError``; ``result`` turns a tool's value into a
    result and raises ``ServerOutputError``. ``memo`` is for what servers derive from it.
    """

    __slots__ = (
        "bind",
        "context_name",
        "description",
        "header_params",
        "input_json",
        "input_schema",
        "is_async",
        "memo",
        "name",
        "output_json",
        "output_schema",
        "parameters",
        "result",
    )

    def __init__(
        self,
        anatomy: Anatomy,
        arguments: Arguments,
        context_name: str | None,
        output_schema: dict[str, Any] | None,
        result: Callable[[Any], Result],
    ) -> None:
        self.name = anatomy.name
        self.description = (cleandoc(anatomy.doc).strip() or None) if anatomy.doc else None
        self.is_async = anatomy.is_async
        self.context_name = context_name
        self.bind: Bind = arguments.bind
        self.parameters: tuple[ParameterInfo, ...] = arguments.parameters
        self.input_schema = arguments.schema
        self.input_json = orjson.dumps(arguments.schema)
        try:
            self.header_params: tuple[HeaderParam, ...] = header_params(arguments.schema)
        except ValueError as exc:
            raise ValueError(f"{anatomy.where}: {exc}") from None
        self.output_schema = output_schema
        self.output_json = None if output_schema is None else orjson.dumps(output_schema)
        self.result = result
        self.memo: dict[str, Any] = {}


class _Options(NamedTuple):
    """What besides the function decides the compiled form."""

    kind: Kind = "tool"
    uri_names: frozenset[str] = frozenset()
    input_schema: Any = None
    output_schema: Any = None
    structured_output: bool | None = None


_PLAIN = _Options()


def compile_handler(
    handler: Callable[..., Any],
    *,
    input_schema: Any = None,
    output_schema: Any = None,
    structured_output: bool | None = None,
    kind: Kind = "tool",
    uri_names: frozenset[str] = frozenset(),
) -> Compiled:
    """
    Compile *handler*, or find what was compiled for an equal one.

    Args:
        handler: a function, method, partial or callable object.
        input_schema: replaces what the type hints say.
        output_schema: replaces what the return annotation says.
        structured_output: False for text only; True to insist on structured content.
        kind: what it is registered as. Prompts and resources have no output schema.
        uri_names: the variables of a resource's URI template.

    Raises:
        TypeError: a parameter cannot be passed by name or its type cannot be handled.
        ValueError: a schema is not valid, or an ``x-mcp-header`` breaks the rules.
    """
    if kind == "tool" and input_schema is None and output_schema is None and structured_output is None:
        options = _PLAIN
        # The usual case, a plain function: no need to take it apart.
        if type(handler) is FunctionType and not handler.__dict__:
            slot = _CACHE.get(id(handler.__code__))
            if slot is not None:
                for variant in slot.plain:
                    if variant.fits(handler):
                        return variant.compiled
    else:
        options = _Options(kind, uri_names, _as_dict(input_schema), _as_dict(output_schema), structured_output)
    return _find(handler, options)


def _as_dict(schema: Any) -> Any:
    """A mapping of another kind would be compared by identity, and its content may change."""
    return dict(schema) if isinstance(schema, Mapping) else schema


def _find(handler: Callable[..., Any], options: _Options) -> Compiled:
    anatomy = dissect(handler)
    function = anatomy[0]  # By index: as an attribute, a function would count as a method.
    if function is None:
        return _compile(anatomy, options)[0]
    slot = _CACHE.get(id(function.__code__))
    if slot is None:
        slot = _CACHE[id(function.__code__)] = _Slot(function.__code__)
        while len(_CACHE) > _MAX_CODES:
            _CACHE.popitem(last=False)
    for variant in slot.variants:
        if variant.is_for(anatomy, options) and variant.fits(function):
            return variant.compiled
    compiled, names = _compile(anatomy, options)
    if len(slot.variants) < MAX_VARIANTS:
        try:
            variant = _Variant(compiled, anatomy, options, function, names)
        except RecursionError:  # A default that holds itself can be compared with nothing.
            return compiled
        slot.variants.append(variant)
        if options is _PLAIN and handler is function:
            slot.plain.append(variant)
    elif not slot.warned:
        slot.warned = True
        _log.warning(
            "%s is compiled anew for each request: its types or defaults differ every time. Define models and "
            "Annotated aliases at module level and let the factory only choose between them",
            anatomy.where,
        )
    return compiled


class _Slot:
    """The compiled forms of one piece of code, which it keeps alive so that its id stays its own."""

    __slots__ = ("code", "plain", "variants", "warned")

    def __init__(self, code: Any) -> None:
        self.code = code
        self.variants: list[_Variant] = []
        #: Those of functions that are registered as they are.
        self.plain: list[_Variant] = []
        self.warned = False


_CACHE: OrderedDict[int, _Slot] = OrderedDict()


class _Variant:
    """A compiled form and what it was made from."""

    __slots__ = (
        "_anatomy",
        "_annotations",
        "_constant",
        "_defaults",
        "_doc",
        "_kwdefaults",
        "_name",
        "_names",
        "_options",
        "_raw_defaults",
        "compiled",
    )

    def __init__(
        self, compiled: Compiled, anatomy: Anatomy, options: _Options, function: FunctionType, names: Names | None
    ) -> None:
        self.compiled = compiled
        # Without the function, whose closure may hold a request's data.
        self._anatomy = anatomy._replace(function=None, signature=_snapshot_signature(anatomy.signature))
        self._options = _Options(*map(snapshot, options))
        self._raw_defaults = function.__defaults__
        self._constant = all(type(value) in _CONSTANTS for value in function.__defaults__ or ())
        self._defaults = snapshot(function.__defaults__)
        self._kwdefaults = snapshot(function.__kwdefaults__)
        self._annotations = tuple((name, snapshot(value)) for name, value in function.__annotations__.items())
        self._names = names
        self._doc = function.__doc__
        self._name = function.__name__

    def is_for(self, anatomy: Anatomy, options: _Options) -> bool:
        """Tell whether the layers around the function, and the options, are the same."""
        ours = self._anatomy
        return (
            ours.is_async is anatomy.is_async
            and ours.bound == anatomy.bound
            and ours.fixed == anatomy.fixed
            and ours.name == anatomy.name
            and ours.doc == anatomy.doc
            and _same_signature(ours.signature, anatomy.signature)
            and same(tuple(self._options), tuple(options))
        )

    def fits(self, function: FunctionType) -> bool:
        """Tell whether *function* would compile to the same."""
        defaults = function.__defaults__
        if not (self._constant and defaults is self._raw_defaults) and not same(defaults, self._defaults):
            return False
        keyword_only = function.__kwdefaults__
        if keyword_only is not self._kwdefaults and not same(keyword_only, self._kwdefaults):
            return False
        annotations = function.__annotations__
        if len(annotations) != len(self._annotations):
            return False
        for name, known in self._annotations:
            value = annotations.get(name, Parameter.empty)
            if value is not known and not _same_annotation(value, known):
                return False
        if function.__doc__ is not self._doc and function.__doc__ != self._doc:
            return False
        return function.__name__ == self._name and (self._names is None or self._names.hold(function))


def _same_annotation(value: Any, known: Any) -> bool:
    kind = type(value)
    if kind is str:
        return bool(value == known)
    if kind is UnionType and type(known) is UnionType:
        # ``str | None`` is a new object each time its function is defined.
        mine, theirs = value.__args__, known.__args__
        if len(mine) == len(theirs):
            for a, b in zip(mine, theirs):  # noqa: B905 - checked above, and this is the hot path
                if a is not b:
                    break
            else:
                return True
    return same(value, known)


def _snapshot_signature(signature: Signature | None) -> Signature | None:
    if signature is None:
        return None
    parameters = signature.parameters.values()
    return signature.replace(parameters=[p.replace(default=snapshot(p.default)) for p in parameters])


def _same_signature(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    mine, theirs = tuple(a.parameters.values()), tuple(b.parameters.values())
    return (
        len(mine) == len(theirs)
        and same(a.return_annotation, b.return_annotation)
        and all(
            x.name == y.name and x.kind is y.kind and same(x.default, y.default) and same(x.annotation, y.annotation)
            for x, y in zip(mine, theirs, strict=True)
        )
    )


def _compile(anatomy: Anatomy, options: _Options) -> tuple[Compiled, Names | None]:
    parameters = parameters_of(anatomy)
    raw: dict[str, Any] = {p.name: p.annotation for p in parameters if p.annotation is not Parameter.empty}
    function, signature = anatomy[0], anatomy.signature
    if signature is not None:
        if signature.return_annotation is not signature.empty:
            raw["return"] = signature.return_annotation
    elif function is not None and "return" in function.__annotations__:
        raw["return"] = function.__annotations__["return"]
    hints, names = resolve(raw, function, anatomy.where)
    context = [p.name for p in parameters if _is_context(hints.get(p.name))]
    if len(context) > 1:
        raise TypeError(f"{anatomy.where}: the parameters {', '.join(context)} are all the Context; one is enough")
    filled = [p for p in parameters if p.name not in context]
    returned = hints.pop("return", Any)
    if options.input_schema is None:
        arguments = from_hints(filled, {p.name: hints.get(p.name, Any) for p in filled}, anatomy.where)
    else:
        needed = [p.name for p in filled if p.default is Parameter.empty]
        if len(needed) > 1:
            raise TypeError(
                f"{anatomy.where}: with an input_schema the handler takes the arguments as one parameter, and perhaps "
                f"the Context; it needs {', '.join(needed)}"
            )
        takes = needed[0] if needed else filled[0].name if filled else None
        arguments = from_schema(options.input_schema, takes, anatomy.where)
    if options.kind == "resource":
        _check_variables(filled, options.uri_names, anatomy.where)
    schema: dict[str, Any] | None = None
    result: Callable[[Any], Result] = _unused
    if options.kind == "tool":
        schema, result = compile_output(returned, options.output_schema, options.structured_output, anatomy.where)
    return Compiled(anatomy, arguments, context[0] if context else None, schema, result), names


def _unused(value: Any) -> Result:
    raise AssertionError("only tools turn their values into tool results")


def _is_context(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_context(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(_is_context(arg) for arg in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, Context)


def _check_variables(parameters: list[Parameter], variables: frozenset[str], where: str) -> None:
    """A resource's parameters are the variables of its URI template, no more and no fewer."""
    names = {parameter.name for parameter in parameters}
    missing = sorted(variables - names)
    if missing:
        raise TypeError(f"{where}: the URI template has the variable {missing[0]!r}, but there is no such parameter")
    extra = [p.name for p in parameters if p.name not in variables and p.default is Parameter.empty]
    if extra:
        raise TypeError(f"{where}: nothing fills the parameter {extra[0]!r}; it is no variable of the URI")
