"""
Annotations as types: strings resolved, and what they were resolved with remembered.

Under ``from __future__ import annotations`` an annotation is a string, and the same string may name another class in
another closure or after a global was rebound. :class:`Names` remembers the objects behind the names, so that what was
compiled for one function is not used for another whose names mean something else.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import attrgetter, is_, itemgetter, or_
from types import FunctionType, GenericAlias, SimpleNamespace, UnionType
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, Required, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from typing_extensions import TypedDict, is_typeddict

from twolane.server.equality import same, snapshot

__all__ = ["Names", "modern", "resolve"]

_ABSENT: Any = object()


class Names:
    """
    What the string annotations of one function were resolved with.

    ``cells`` are closure variables by index, ``globals`` module variables by name (``_ABSENT`` for builtins and for
    what was not there), ``chains`` attributes looked up on one of them. ``evaluated`` are annotations that names do
    not decide, such as ``Literal[tuple(modes())]``: those are evaluated again each time.
    """

    __slots__ = ("_cells", "_chains", "_evaluated", "_globals")

    def __init__(self, strings: Mapping[str, tuple[Any, Any]], function: FunctionType) -> None:
        closure = _closure(function)
        free = function.__code__.co_freevars
        roots: dict[str, Any] = {}
        chains: dict[tuple[str, str], Any] = {}
        evaluated = []
        for name, (annotation, value) in strings.items():
            reader = _Reader(closure, function.__globals__)
            reader.read(_texts(annotation))
            roots |= reader.roots
            chains |= reader.chains
            if not reader.settled:
                evaluated.append((name, annotation, value))
        self._cells = tuple(
            (free.index(name), _held(closure.get(name, _ABSENT))) for name in sorted(roots) if name in free
        )
        self._globals = tuple(
            (name, _held(function.__globals__.get(name, _ABSENT))) for name in sorted(roots) if name not in closure
        )
        self._chains = tuple(
            (roots[name], attrgetter(path), _held(value))
            for (name, path), value in sorted(chains.items(), key=itemgetter(0))
            if value is not _ABSENT
        )
        self._evaluated = tuple(evaluated)

    def hold(self, function: FunctionType) -> bool:
        """Tell whether every annotation means for *function* what it meant before."""
        variables = function.__globals__
        for name, known in self._globals:
            value = variables.get(name, _ABSENT)
            if value is not known and not same(value, known):
                return False
        for index, known in self._cells:
            try:
                value = function.__closure__[index].cell_contents  # type: ignore[index]
            except ValueError:  # the variable is not assigned yet
                value = _ABSENT
            if value is not known and not same(value, known):
                return False
        for root, getter, known in self._chains:
            value = _attribute(root, getter)
            if value is not known and not same(value, known):
                return False
        if self._evaluated:
            closure = _variables(function)
            try:
                return all(
                    same(_evaluate(annotation, name, function, closure, ""), value)
                    for name, annotation, value in self._evaluated
                )
            except TypeError:
                return False  # Compiling it tells why.
        return True


def _held(value: Any) -> Any:
    """Return *value* as something to compare with later: what a list or dict holds now, else the object itself."""
    return snapshot(value) if type(value) in (dict, list, set, tuple) else value


def _attribute(root: Any, getter: Callable[[Any], Any]) -> Any:
    try:
        return getter(root)
    except Exception:
        return _ABSENT


def _closure(function: FunctionType) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            pass  # Not assigned yet: then no annotation can name it either.
    return variables


def _variables(function: FunctionType | None) -> dict[str, Any]:
    """The names that an annotation of *function* sees besides those of its module."""
    if function is None:
        return {}
    return _closure(function) | {
        parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())
    }


class _Reader(ast.NodeVisitor):
    """
    Reads what annotations depend on: ``roots``, names with their values, and ``chains`` of attributes on them.

    ``settled`` becomes False where those do not decide what an annotation means. A string within an annotation is one
    too, except in ``Literal`` and in metadata.
    """

    def __init__(self, closure: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        self.roots: dict[str, Any] = {}
        self.chains: dict[tuple[str, str], Any] = {}
        self.settled = True
        self._closure = closure
        self._variables = variables
        self._read: set[str] = set()
        self._data = False

    def read(self, texts: Iterable[str]) -> None:
        """Read annotations."""
        for text in texts:
            if text not in self._read:
                self._read.add(text)
                try:
                    tree = ast.parse(text.strip(), mode="eval").body
                except (SyntaxError, ValueError):
                    self.settled = False
                else:
                    self._visit(tree, data=False)

    def _visit(self, node: ast.AST, *, data: bool) -> None:
        before, self._data = self._data, data
        self.visit(node)
        self._data = before

    def _value(self, node: ast.AST) -> Any:
        """Return what a name or a chain of attributes stands for."""
        if isinstance(node, ast.Name):
            for names in (self._closure, self._variables, vars(builtins)):
                if node.id in names:
                    return names[node.id]
        elif isinstance(node, ast.Attribute):
            root = self._value(node.value)
            if root is not _ABSENT:
                return _attribute(root, attrgetter(node.attr))
        return _ABSENT

    def visit_Name(self, node: ast.Name) -> None:
        if node.id not in self.roots:
            value = self.roots[node.id] = self._value(node)
            self.read(_texts(value) if get_origin(value) is not None else ())  # an alias with quoted names in it

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = [node.attr]
        inner = node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            value = self._value(node)
            self.chains[inner.id, ".".join(reversed(names))] = value
            self.read(_texts(value) if get_origin(value) is not None else ())
        else:
            self.settled = False
        self.visit(inner)

    def visit_Constant(self, node: ast.Constant) -> None:
        # A quoted annotation in a module that postpones all of them is a string within a string.
        if isinstance(node.value, str) and not self._data:
            self.read((node.value,))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        kind = self._value(node.value)
        self._check_content(kind)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index, item in enumerate(items):
            self._visit(item, data=self._data or kind is Literal or (kind is Annotated and index > 0))

    def visit_Starred(self, node: ast.Starred) -> None:
        self._check_content(self._value(node.value))
        self.visit(node.value)

    def _check_content(self, value: Any) -> None:
        """Types stay as they are, and builtins are compared by content; what other objects hold may change."""
        known = isinstance(value, type) or type(value).__module__ in ("builtins", "typing", "typing_extensions")
        if not known and value is not _ABSENT:
            self.settled = False

    def visit_Call(self, node: ast.Call) -> None:
        made_by = self._value(node.func)
        if not isinstance(made_by, type | FunctionType) or made_by.__module__.partition(".")[0] not in _REPEATABLE:
            self.settled = False
        for part in ast.iter_child_nodes(node):
            self._visit(part, data=True)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        settled = self.settled
        super().generic_visit(node)
        self.settled = settled  # Its body is evaluated later, by whoever calls it.

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _SETTLED):
            self.settled = False
        super().generic_visit(node)


#: What does not depend on more than the names in it; and packages that make equal objects of equal arguments.
_SETTLED = (
    *(ast.BinOp, ast.Dict, ast.List, ast.Set, ast.Slice, ast.Tuple, ast.UnaryOp),
    *(ast.arg, ast.arguments, ast.expr_context, ast.keyword, ast.operator, ast.unaryop),
)
_REPEATABLE = frozenset(("annotated_types", "pydantic", "pydantic_core", "twolane", "typing", "typing_extensions"))


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
    strings: dict[str, tuple[Any, Any]] = {}
    resolved: dict[str, Any] = {}
    closure: dict[str, Any] | None = None
    for name, annotation in annotations.items():
        if _texts(annotation):
            if closure is None:
                closure = _variables(function)
            value = _evaluate(annotation, name, function, closure, where)
            strings[name] = annotation, value
            annotation = value
        resolved[name] = modern(annotation)
    return resolved, Names(strings, function) if strings and function is not None else None


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
        # Where annotations are strings, Python does not see these marks and takes every key for required.
        mark = get_origin(hint)
        if mark in (Required, NotRequired):
            (hint,) = get_args(hint)
        else:
            mark = Required if name in schema.__required_keys__ else NotRequired
        fields[name] = mark[modern(hint, (*open_, schema))]
    made = TypedDict(schema.__name__, fields)  # type: ignore[misc, no-redef]
    for attribute in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(schema, attribute):
            setattr(made, attribute, getattr(schema, attribute))
    _MADE[schema] = made
    return made
