"""
Annotations as types: strings resolved, and what they were resolved with remembered.

Under ``from __future__ import annotations`` an annotation is a string, and the same string may name another class in
another closure or after a global was rebound. :class:`Names` remembers the objects behind the names, so that what was
compiled for one function is not used for another whose names mean something else.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from operator import attrgetter, is_, or_
from types import FunctionType, GenericAlias, SimpleNamespace, UnionType
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, Required, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from typing_extensions import TypedDict, is_typeddict

__all__ = ["Names", "modern", "resolve"]

_ABSENT: Any = object()


class Names:
    """
    The objects that the string annotations of one function were resolved with.

    ``cells`` are closure variables by index, ``globals`` module variables by name (``_ABSENT`` for builtins and for
    what was not there), ``chains`` attributes looked up on one of them.
    """

    __slots__ = ("_cells", "_chains", "_globals")

    def __init__(self, texts: set[str], function: FunctionType) -> None:
        roots: set[str] = set()
        chains: set[tuple[str, str]] = set()
        for text in texts:
            _collect(text, roots, chains)
        closure = _closure(function)
        free = function.__code__.co_freevars
        self._cells = tuple((free.index(name), closure[name]) for name in sorted(roots) if name in closure)
        self._globals = tuple(
            (name, function.__globals__.get(name, _ABSENT)) for name in sorted(roots) if name not in closure
        )
        found = []
        for name, path in sorted(chains):
            root = closure.get(name, function.__globals__.get(name, _ABSENT))
            value = _attribute(root, attrgetter(path))
            if value is not _ABSENT:
                found.append((root, attrgetter(path), value))
        self._chains = tuple(found)

    def hold(self, function: FunctionType) -> bool:
        """Tell whether every name means for *function* what it meant before."""
        variables = function.__globals__
        for name, value in self._globals:
            if variables.get(name, _ABSENT) is not value:
                return False
        for index, value in self._cells:
            try:
                if function.__closure__[index].cell_contents is not value:  # type: ignore[index]
                    return False
            except ValueError:  # the variable is not assigned yet
                return False
        return all(_attribute(root, getter) is value for root, getter, value in self._chains)


def _attribute(root: Any, getter: Callable[[Any], Any]) -> Any:
    try:
        return getter(root)
    except AttributeError:
        return _ABSENT


def _closure(function: FunctionType) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            pass  # Not assigned yet: then no annotation can name it either.
    return variables


def _collect(text: str, roots: set[str], chains: set[tuple[str, str]]) -> None:
    """Collect the names in the annotation *text* and the attribute chains on them."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return
    _Collector(roots, chains).visit(tree)


class _Collector(ast.NodeVisitor):
    """Walks an annotation. A string within it is an annotation too, except in ``Literal`` and metadata."""

    def __init__(self, roots: set[str], chains: set[tuple[str, str]]) -> None:
        self.roots = roots
        self.chains = chains

    def visit_Name(self, node: ast.Name) -> None:
        self.roots.add(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        # A quoted annotation in a module that postpones all of them is a string within a string.
        if isinstance(node.value, str):
            _collect(node.value, self.roots, self.chains)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = [node.attr]
        inner = node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.chains.add((inner.id, ".".join(reversed(names))))
        self.visit(inner)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index, item in enumerate(items):
            data = name == "Literal" or (name == "Annotated" and index > 0)
            if not (data and isinstance(item, ast.Constant)):
                self.visit(item)


def resolve(
    annotations: Mapping[str, Any], function: FunctionType | None, where: str
) -> tuple[dict[str, Any], Names | None]:
    """
    Turn *annotations* of *function* into types.

    Args:
        annotations: annotations by parameter name, ``return`` included.
        function: the function they stand on, whose module and closure give the names meaning.
        where: how to name the function in an error.

    Returns:
        The types, and what the strings among the annotations depended on (None without strings).

    Raises:
        TypeError: an annotation cannot be resolved.
    """
    texts: set[str] = set()
    resolved: dict[str, Any] = {}
    closure: dict[str, Any] | None = None
    for name, annotation in annotations.items():
        found = _texts(annotation)
        if found:
            texts |= found
            if closure is None:
                closure = _closure(function) if function is not None else {}
                closure |= {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())}
            annotation = _evaluate(annotation, name, function, closure, where)
        resolved[name] = modern(annotation)
    return resolved, Names(texts, function) if texts and function is not None else None


def _texts(annotation: Any) -> set[str]:
    """The strings within *annotation* that stand for types."""
    if isinstance(annotation, str):
        return {annotation}
    if isinstance(annotation, ForwardRef):
        return {annotation.__forward_arg__}
    if isinstance(annotation, list):  # the parameters of a Callable
        return set().union(*map(_texts, annotation))
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        return set()
    args = get_args(annotation)
    return set().union(*map(_texts, args[:1] if origin is Annotated else args))


def _evaluate(annotation: Any, name: str, function: FunctionType | None, closure: dict[str, Any], where: str) -> Any:
    variables = function.__globals__ if function is not None else {}
    try:
        holder: Any = SimpleNamespace(__annotations__={name: annotation})
        return get_type_hints(holder, globalns=variables, localns=closure, include_extras=True)[name]
    except Exception as exc:
        what = "the return annotation" if name == "return" else f"the annotation of the parameter {name!r},"
        reason = f"{exc}" if isinstance(exc, NameError) else f"{type(exc).__name__}: {exc}"
        raise TypeError(
            f"{where}: {what} {_shown(annotation)} cannot be resolved ({reason}). Define or import what it names at "
            "module level, outside `if TYPE_CHECKING:`; or, where it belongs to an enclosing function, drop "
            "`from __future__ import annotations` from that module"
        ) from exc


def _shown(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    return repr(annotation)


def modern(annotation: Any, _open: tuple[Any, ...] = ()) -> Any:
    """
    Replace each ``typing.TypedDict`` in *annotation* by an equal one that pydantic accepts.

    Before Python 3.12 pydantic refuses them, though all it misses there is which keys are optional.

    Raises:
        TypeError: such a TypedDict refers to itself, or names something that cannot be resolved.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and is_typeddict(annotation):
        return annotation if type(annotation).__module__ != "typing" else _modern_typed_dict(annotation, _open)
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        return annotation
    args = get_args(annotation)
    typed = args[:1] if origin is Annotated else args
    changed = tuple(modern(arg, _open) for arg in typed) + args[len(typed) :]
    if all(map(is_, args, changed)):
        return annotation
    if origin is Annotated:
        return Annotated[changed]
    if isinstance(annotation, UnionType):
        return reduce(or_, changed)
    copy = getattr(annotation, "copy_with", None)
    return copy(changed) if copy is not None else GenericAlias(origin, changed)


_MADE: WeakKeyDictionary[type, Any] = WeakKeyDictionary()


def _modern_typed_dict(schema: Any, open_: tuple[Any, ...]) -> Any:
    made = _MADE.get(schema)
    if made is not None:
        return made
    if schema in open_:
        raise TypeError(
            f"the TypedDict {schema.__name__} refers to itself; import TypedDict from typing_extensions for that"
        )
    try:
        hints = get_type_hints(schema, include_extras=True)
    except NameError as exc:
        raise TypeError(f"the TypedDict {schema.__name__} has an annotation that cannot be resolved: {exc}") from exc
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        if get_origin(hint) in (Required, NotRequired):
            (hint,) = get_args(hint)
        hint = modern(hint, (*open_, schema))
        fields[name] = Required[hint] if name in schema.__required_keys__ else NotRequired[hint]
    made = TypedDict(schema.__name__, fields)  # type: ignore[misc, no-redef]
    for attribute in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(schema, attribute):
            setattr(made, attribute, getattr(schema, attribute))
    _MADE[schema] = made
    return made
