"""Write the async twins of blocking classes: `nox -s twins`.

    python .ci/async_twins.py            write every generated module
    python .ci/async_twins.py --check    fail if one of them is stale

Each row of `TWINS` makes one module with one class: the methods of a blocking class as `async def`,
with their signatures. To add a row, say which calls block; the comments are not carried over.
"""

import ast
import difflib
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPY = ""  # a body: that of the blocking method, with its blocking calls awaited


@dataclass(frozen=True, kw_only=True)
class Twin:
    """One generated module, and how its class follows from a blocking one.

    Attributes:
        source: the module with the blocking class, from the root of the repository.
        target: the generated module, in the same folder.
        blocking: name of the blocking class.
        header: first line of the generated class, such as `class AsyncStore(Store):`.
        module_docstring, class_docstring: of what is generated; an empty `class_docstring` copies
            that of the blocking class.
        class_body: statements at the start of the class, such as attributes with their types.
        imports: statements beside the imports of the source; what is not used is left out.
        methods: which to generate; empty for all public ones that are not async or a property.
        skip: of these, the ones to leave out.
        prefix: put before each method's name, after its underscores: `a` makes `aput` of `put`.
        bodies: by method, and under `*` for the others: `COPY`, or statements in which `{name}` is
            the blocking method and `{arguments}` what passes its parameters on, each led by a
            comma: `return await self._run(self.{name}{arguments})`.
        docstring: of each method; `{first}` is the first line of the blocking method's docstring,
            `{name}` its name.
        calls: which calls of a copied body block, and their async versions:
            `{"self._write": "self._awrite"}`. Generated methods are called without an entry. In a
            `with` it becomes `async with`, anywhere else `await`.
        renames: of other names in copied bodies, signatures and decorators:
            `{"contextmanager": "asynccontextmanager"}`.
    """

    source: str
    target: str
    blocking: str
    header: str
    module_docstring: str
    class_docstring: str
    class_body: str = ""
    imports: str = ""
    methods: Collection[str] = ()
    skip: Collection[str] = ()
    prefix: str = ""
    bodies: Mapping[str, str] = field(default_factory=lambda: {"*": COPY})
    docstring: str = "{first}"
    calls: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)


TWINS = (
    Twin(
        source="core/commonplace/blocking_memory.py",
        target="core/commonplace/memory.py",
        blocking="BlockingMemory",
        header="@traced_methods\n@hinting_methods\nclass Memory(BlockingMemory):",
        module_docstring=(
            "`Memory`: async versions of the methods in `blocking_memory.py`, the one to read."
        ),
        class_docstring="",
        imports=(
            "from .blocking_memory import BlockingMemory\n"
            "from .telemetry import traced_methods\n"
            "from .validation import hinting_methods"
        ),
        prefix="a",
        skip=["open", "aopen", "from_env", "afrom_env", "close", "session"],
        bodies={
            "*": "return await self._run(self.{name}{arguments})",
            **dict.fromkeys(["add", "update", "delete", "feedback", "batch", "forget"], COPY),
            "search": COPY,
            "flush": COPY,
        },
        docstring="Async version of `{name}`.",
        calls={
            "self._write": "self._awrite",
            "self._submission.submit": "self._submission.asubmit",
            "self._search.run": "self._arun_search",
            "self._runtime.worker.flush": "self._submission.aflush",
        },
    ),
    Twin(
        source="core/commonplace/blocking_session.py",
        target="core/commonplace/session.py",
        blocking="BlockingSession",
        header="@hinting_methods\nclass Session(BlockingSession):",
        module_docstring=(
            "`Session`: async versions of the methods in `blocking_session.py`, the one to read."
        ),
        class_docstring="",
        imports="from .blocking_session import BlockingSession",
        prefix="a",
        bodies={
            "*": "return await self._aread(self.{name}{arguments})",
            **dict.fromkeys(["summarize", "promote", "close"], COPY),
        },
        docstring="Async version of `{name}`.",
        calls={
            "self._read": "self._aread",
            "self._write": "self._awrite",
            "self._answer": "self._aanswer",
        },
    ),
    Twin(
        source="adapters/commonplace_mem0/memory.py",
        target="adapters/commonplace_mem0/async_memory.py",
        blocking="Mem0Memory",
        header="@hinting_methods\nclass AsyncMem0Memory(AwaitedBase):",
        module_docstring="mem0's class `AsyncMemory`, with the calls of every version of mem0.",
        class_docstring="Remembers for users, agents and runs; await each call. See `Memory`.",
        imports="from .base import AwaitedBase",
        calls={"self._run": "self._run"},
    ),
    Twin(
        source="adapters/commonplace_langgraph/checkpoints.py",
        target="adapters/commonplace_langgraph/async_checkpoints.py",
        blocking="CommonplaceSaver",
        header="class AwaitedCheckpoints(BaseCheckpointSaver[str]):",
        module_docstring="Awaitable methods of LangGraph's checkpointer, on the memory's threads.",
        class_docstring="Awaits the blocking methods of a checkpointer.",
        class_body="_lazy: LazyMemory",
        imports="from commonplace.agents import LazyMemory\n"
        "from langgraph.checkpoint.base import BaseCheckpointSaver",
        skip=("open", "from_conn_string", "list", "get_next_version"),
        prefix="a",
        bodies={"*": "return await (await self._lazy.aget()).admin.run(self.{name}{arguments})"},
    ),
)


def generate(twin: Twin, source: str) -> str:
    """Write the module of a twin, from the text of its source.

    Raises:
        ValueError: the row names a class or a method that the source does not have.
    """
    module = ast.parse(source)
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    if twin.blocking not in classes:
        raise ValueError(f"{twin.source} has no class {twin.blocking!r}")
    methods = _methods(twin, classes[twin.blocking])
    names = {method.name: _prefixed(method.name, twin.prefix) for method in methods}
    calls = {
        f"{owner}.{name}": f"{owner}.{names[name]}" for name in names for owner in ("self", "cls")
    }
    transform = _Awaiting({**calls, **twin.calls}, twin.renames)
    docstring = twin.class_docstring or ast.get_docstring(classes[twin.blocking], clean=False)
    [twin_class] = ast.parse(f"{twin.header}\n    {docstring!r}").body
    assert isinstance(twin_class, ast.ClassDef)
    twin_class.body += ast.parse(twin.class_body).body
    twin_class.body += [_awaited(twin, method, names[method.name], transform) for method in methods]
    own = Path(twin.target).stem  # which the blocking class may be derived from
    imports = [
        node
        for node in module.body
        if isinstance(node, ast.Import)
        or (isinstance(node, ast.ImportFrom) and (node.level, node.module) != (1, own))
    ]
    written = ast.Module([*imports, *ast.parse(twin.imports).body, twin_class], [])
    text = (
        f"# Generated by `nox -s twins` from {Path(twin.source).name}; do not edit.\n"
        f'"""{twin.module_docstring}"""\n\n{ast.unparse(ast.fix_missing_locations(written))}\n'
    )
    unused_and_order = ("check", "--fix", "--quiet", "--select", "F401,I")
    return _ruff("format", twin.target, _ruff(*unused_and_order, twin.target, text))


def _methods(twin: Twin, blocking: ast.ClassDef) -> list[ast.FunctionDef]:
    methods = {node.name: node for node in blocking.body if isinstance(node, ast.FunctionDef)}
    named = {name for name in twin.bodies if name != "*"}
    if unknown := {*twin.methods, *twin.skip, *named} - methods.keys():
        raise ValueError(f"{twin.blocking} has no methods {sorted(unknown)}")
    chosen = twin.methods or [
        name
        for name, node in methods.items()
        if not name.startswith("_") and "property" not in map(ast.unparse, node.decorator_list)
    ]
    return [methods[name] for name in chosen if name not in twin.skip]


def _prefixed(name: str, prefix: str) -> str:
    bare = name.lstrip("_")
    return name.removesuffix(bare) + prefix + bare


def _awaited(
    twin: Twin, method: ast.FunctionDef, name: str, transform: "_Awaiting"
) -> ast.AsyncFunctionDef:
    """Turn one method into its async twin."""
    first = (ast.get_docstring(method) or "").partition("\n")[0]
    docstring = ast.Constant(twin.docstring.format(first=first, name=method.name))
    given = twin.bodies.get(method.name, twin.bodies.get("*", COPY))
    body = given.format(name=method.name, arguments=_passed_on(method))
    statements = method.body[ast.get_docstring(method) is not None :]
    return ast.AsyncFunctionDef(
        name=name,
        args=transform.visit(method.args),
        body=[
            ast.Expr(docstring),
            *(ast.parse(body).body if body else map(transform.visit, statements)),
        ],
        decorator_list=[transform.visit(node) for node in method.decorator_list],
        returns=method.returns and transform.visit(method.returns),
    )


def _passed_on(method: ast.FunctionDef) -> str:
    """Write the arguments that pass a method's parameters on, without `self`."""
    given = method.args
    passed = [node.arg for node in (*given.posonlyargs, *given.args)][1:]
    passed += [f"*{given.vararg.arg}"] if given.vararg else []
    passed += [f"{node.arg}={node.arg}" for node in given.kwonlyargs]
    passed += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return "".join(f", {argument}" for argument in passed)


class _Awaiting(ast.NodeTransformer):
    """Awaits the calls that have an async version, and renames other names."""

    def __init__(self, calls: Mapping[str, str], renames: Mapping[str, str]) -> None:
        self._calls, self._renames = calls, renames

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = self._renames.get(node.id, node.id)
        return ast.Name(name, node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = self._called(node)
        self.generic_visit(node)
        return ast.Await(node) if called else node

    def visit_With(self, node: ast.With) -> ast.With | ast.AsyncWith:
        """Split a `with` that has items of both kinds into one for each."""
        body = [self.visit(statement) for statement in node.body]
        groups = [(kind, list(items)) for kind, items in groupby(node.items, self._kind)]
        for kind, items in reversed(groups):
            for item in items:
                self.generic_visit(item.context_expr)
            body = [kind(items, body)]
        [outer] = body
        assert isinstance(outer, ast.With | ast.AsyncWith)
        return outer

    def _kind(self, item: ast.withitem) -> type[ast.With] | type[ast.AsyncWith]:
        return ast.AsyncWith if self._called(item.context_expr) else ast.With

    def _called(self, node: ast.AST) -> bool:
        """Put the async version in place of what is called; return whether there is one."""
        text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if text in self._calls and isinstance(node, ast.Call):
            node.func = ast.parse(self._calls[text], mode="eval").body
            return True
        return False


def _ruff(command: str, *options: str) -> str:
    *options_of_ruff, target, text = options
    run = [sys.executable, "-m", "ruff", command, *options_of_ruff, "--stdin-filename", target, "-"]
    done = subprocess.run(run, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"ruff {command} refuses {target}:\n{done.stderr}{done.stdout}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write or check every generated module; return the exit status."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for twin in TWINS:
        target = ROOT / twin.target
        made = generate(twin, (ROOT / twin.source).read_text("utf-8"))
        kept = target.read_text("utf-8") if target.exists() else ""
        if made == kept:
            continue
        if not arguments:
            target.write_text(made, "utf-8")
            print(f"Wrote {twin.target}.")
            continue
        stale = 1
        lines = kept.splitlines(), made.splitlines()
        changes = difflib.unified_diff(*lines, twin.target, "generated", lineterm="")
        print(f"{twin.target} is not what {twin.source} makes. Run: nox -s twins")
        print("\n".join(changes))
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
