"""Every check of this project: `nox -l` lists what it believes about itself.

Plain `nox` runs `tests`: everything, in one environment, on the Python that runs nox. The other
sessions prove one thing each, in an environment that has nothing else.
"""

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests"]

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
ADAPTERS = sorted(path.name.split("_", 1)[1] for path in Path("adapters").glob("commonplace_*"))
TYPED = ["core/commonplace", "noxfile.py", "examples"]
CORE = "core/tests"
STANDING = [  # a memory on each set of engines
    "integrations_tests/crash",
    "integrations_tests/test_graph.py",
    "integrations_tests/test_graph_machine.py",
    "integrations_tests/test_isolation.py",
]
SERVERS = ["integrations_tests/servers", "integrations_tests/cli/test_servers.py", *STANDING]
BOTH = "shared or on_servers or test_servers"  # files whose tests stand on both servers
ENGINES = {
    "embedded": ("", "integrations_tests/backends", *STANDING, "-k", "not neo4j"),
    "neo4j": ("[cli,neo4j,qdrant]", *SERVERS, "-k", f"neo4j or {BOTH}"),
    "qdrant": ("[cli,neo4j,qdrant]", *SERVERS, "-k", f"qdrant or {BOTH}"),
}


def needed_by(adapter: str) -> list[str]:
    """List what only the tests of this adapter need."""
    return group(adapter) if adapter in PROJECT["dependency-groups"] else []


def group(*names: str) -> list[str]:
    """List the requirements of dependency groups: older pips have no `--group`."""
    return list(nox.project.dependency_groups(PROJECT, *names))


def wheel(session: nox.Session) -> Path:
    """Build the wheel, so that a session tests what users get and not the checkout."""
    folder = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.install("build")
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), silent=True)
    return next(folder.glob("*.whl"))


@nox.session
def tests(session: nox.Session) -> None:
    """Run everything in one environment: lint, contracts, types, every test, every example."""
    # Before any extra is there: the core alone.
    session.install("-e", ".", *group("test"))
    session.run("pytest", f"{CORE}/test_core_is_bare.py", "--quiet")
    session.install("-e", ".[all]", *group("lint", "types"))
    session.install(*(one for name in ADAPTERS for one in needed_by(name)))
    _lint(session)
    session.run("lint-imports", "--no-cache")
    session.run("mypy", *TYPED, *(f"adapters/commonplace_{name}" for name in ADAPTERS))
    session.run("pytest", *_parallel(), *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install(*group("lint"))
    _lint(session)


@nox.session
def boundaries(session: nox.Session) -> None:
    """Check the six import contracts; needs no framework installed."""
    session.install("--no-deps", "-e", ".")
    session.install(*group("lint"))
    session.run("lint-imports", "--no-cache")


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """Test the built wheel without any extra: the core is neutral and stands alone."""
    session.install(str(wheel(session)), *group("test"))
    session.run("pytest", CORE, *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the core, the examples and this file, with every extra's real types."""
    session.install("-e", ".[all]", *group("types", "test"))
    session.run("mypy", *TYPED)


@nox.session
@nox.parametrize("adapter", ADAPTERS)
def adapters(session: nox.Session, adapter: str) -> None:
    """Test one adapter against its real framework and no other, and check its types there."""
    session.install(f"{wheel(session)}[{adapter}]", *group("test", "types"), *needed_by(adapter))
    session.run("pytest", *_tests_of(adapter), *session.posargs)
    session.run("mypy", f"adapters/commonplace_{adapter}")


@nox.session
def examples(session: nox.Session) -> None:
    """Run every example and compare what it prints with what it promises."""
    session.install("-e", ".[all]", *group("test"))
    session.run("pytest", "integrations_tests/test_examples.py", *session.posargs)


@nox.session
@nox.parametrize("engines", list(ENGINES))
def backends(session: nox.Session, engines: str) -> None:
    """Test one set of engines: the shared contracts, and a memory that stands on them."""
    extra, *where = ENGINES[engines]
    session.install("-e", f".{extra}", *group("test"), *(group("servers") if extra else ()))
    session.run("pytest", *where, *session.posargs)


@nox.session
def together(session: nox.Session) -> None:
    """Install all extras side by side and import every adapter in one process."""
    session.install(f"{wheel(session)}[all]")
    # With all public names: an adapter may import what it needs when it is asked for them.
    imports = (f"from commonplace_{name} import *" for name in ADAPTERS)
    session.run("python", "-c", "; ".join(["import commonplace", *imports]))


@nox.session
@nox.parametrize("adapter", ADAPTERS)
def lowest(session: nox.Session, adapter: str) -> None:
    """Test one adapter with the oldest versions its extra allows."""
    # Two steps: the lowest versions of the test tools themselves are nobody's promise.
    session.install("uv")
    built = f"{wheel(session)}[{adapter}]"
    session.run("uv", "pip", "install", "--resolution", "lowest-direct", built)
    session.install(*group("test"), *needed_by(adapter))
    session.run("pytest", *_tests_of(adapter), *session.posargs)


def _lint(session: nox.Session) -> None:
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


def _parallel() -> list[str]:
    """Spread tests over processes; each starts servers of its own, unless it is told which."""
    if "NEO4J_URI" in os.environ:
        return []
    return ["--numprocesses=auto", "--maxprocesses=4", "--dist=worksteal"]


def _tests_of(adapter: str) -> list[str]:
    tests = Path("integrations_tests/adapters")
    return sorted(map(str, [*tests.glob(f"test_{adapter}*.py"), *tests.glob(adapter)]))
