"""Every check of this project.

Plain `nox` runs what a change needs while it is made: style, import contracts, types, and the tests
of the core, of the embedded engines and of the examples. `nox -s full` runs everything there is.
Each of the other sessions proves one thing, in an environment that has nothing else.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests"]
# Many images set it; each of the thousand processes of the tests would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Tests make thousands of memories, which wait for the disk with every write. In memory they prove
# the same: a process that is killed leaves all that it has written, and no test cuts the power.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- pytest makes a folder of the user's own in it
if (
    SHARED_MEMORY.is_dir()
    and shutil.disk_usage(SHARED_MEMORY).free >= 2 * 2**30
    and not os.statvfs(SHARED_MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(SHARED_MEMORY))

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
ADAPTERS = sorted(path.name.split("_", 1)[1] for path in Path("adapters").glob("commonplace_*"))
PACKAGES = ["commonplace", *(f"commonplace_{name}" for name in ADAPTERS)]
# Sessions of releases older than those of the extras.
APART = ["agentscope_v1", "agentscope_runtime", "mem0_v1"]
MCP = ["<2", ">=2"]
# Releases in which who calls an agent is read as the rules of the adapters say (`StackRule`), with
# what they need beside, the tests, and which of these.
CALLERS = {
    "agentscope 1": (
        ["1.0.11", "1.0.12", "1.0.13", "1.0.14", "1.0.15", "1.0.16", "1.0.17", "1.0.18", "1.0.19",
         "1.0.20", "1.0.21"],
        ["greenlet>=3", "mcp<2", "tqdm>=4.60"],
        "test_agentscope_v1.py",
        "stored_once or restored or summary or serves_another_user or elsewhere or module_of",
    ),
    "agentscope 2": (
        ["2.0.10", "2.0.11"],
        [],
        "test_agentscope_days.py",
        "outer or handed or pipeline or team or goal or changed or outlives or called_like",
    ),
    "strands-agents": (["1.52.0", "1.62.0"], [], "strands/test_strands_agents.py", ""),
}  # fmt: skip
PUBLIC_TYPES = 0.98  # of the public names of a package
CONSTRAINTS = "constraints.txt"
# Of Debian 12, of Python 3.12, and the newest.
PIPS = ["pip==23.0", "pip==23.2", "pip"]
RESOLVE_SECONDS = 300  # for one extra, with the downloads that old pips need to read metadata
TWINS = ".ci/async_twins.py"
OPENAPI = ".ci/page_openapi.py"
TYPED = ["core/commonplace", "adapters", "noxfile.py", "examples", TWINS, OPENAPI]

CORE = "core/tests"
EMBEDDED = [
    "integrations_tests/backends",
    "integrations_tests/cli",
    "integrations_tests/docs",
    "integrations_tests/elsewhere",
    "integrations_tests/web",
]
ON_ANY_ENGINE = [  # whole memories, on each set of engines
    "integrations_tests/crash",
    "integrations_tests/test_extraction.py",
    "integrations_tests/test_graph.py",
    "integrations_tests/test_graph_machine.py",
    "integrations_tests/test_isolation.py",
]
SERVERS = ["integrations_tests/servers", "integrations_tests/cli/test_servers.py", *ON_ANY_ENGINE]
BOTH = "shared or on_servers or test_servers"  # files whose tests need both servers
SERVER_ENGINES = list(PROJECT["tool"]["commonplace"]["engines"])
EMBEDDED_ONLY = ("integrations_tests/backends", *ON_ANY_ENGINE, "-m", "not external_service")


def group(*names: str) -> list[str]:
    """List the requirements of dependency groups: older pips have no `--group`."""
    return list(nox.project.dependency_groups(PROJECT, *names))


def needed_by(*adapters: str) -> list[str]:
    """List what only the tests of these adapters need."""
    return group(*(name for name in adapters if name in PROJECT["dependency-groups"]))


def wheel(session: nox.Session) -> Path:
    """Build the wheel, so that a session tests what users get and not the checkout."""
    folder = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.install("build")
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), silent=True)
    return next(folder.glob("*.whl"))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, import contracts, and that nothing grew beyond what the design says."""
    session.install("-e", ".[all]", *group("lint"))  # the gauge imports every adapter
    check_style(session)


@nox.session
def twins(session: nox.Session) -> None:
    """Write the async twins of blocking classes anew, after a change of these."""
    session.install(*group("lint"))
    session.run("python", TWINS)


@nox.session
def openapi(session: nox.Session) -> None:
    """Write the OpenAPI file of the pages' JSON anew, after a change of their data."""
    session.install("-e", ".[serve]")
    session.run("python", OPENAPI)


@nox.session
def types(session: nox.Session) -> None:
    """Check every type, with the real types of every extra."""
    session.install("-e", ".[all,testing]", *group("types"))
    check_types(session)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests that need no framework and no server, and every example."""
    session.install("-e", ".[all]", *group("lint", "test"))  # lint: contracts are broken on purpose
    quick = [CORE, *EMBEDDED, *map(str, sorted(Path("integrations_tests").glob("test_*.py")))]
    session.run(
        "pytest", *parallel(), "-m", "not (slow or external_service)", *(session.posargs or quick)
    )


@nox.session
def full(session: nox.Session) -> None:
    """Run everything in one environment, with the servers that can be had.

    Releases that go with none of the others are tested after it, in environments of their own.
    """
    # Before any extra is there: the core alone.
    session.install("-e", ".", *group("test"))
    session.run("pytest", f"{CORE}/test_core_is_bare.py", "--quiet")
    session.install(
        *("-e", ".[all,testing]"),
        *group("browser", "lint", "types", "qdrant"),
        *needed_by(*ADAPTERS),
    )
    check_style(session)
    check_types(session)
    session.run("pytest", *parallel(), *session.posargs)
    if not session.posargs:
        for other in ["package", "mcp", *APART]:
            session.notify(other, posargs=[])


@nox.session
def agentscope_v1(session: nox.Session) -> None:
    """Test the memory for agents of AgentScope 1.x, which goes with none of the extras."""
    check_apart(session, "agentscope_v1")


@nox.session
def agentscope_runtime(session: nox.Session) -> None:
    """Test the memory service of agentscope-runtime, which goes with none of the extras."""
    check_apart(session, "agentscope_runtime")


@nox.session
def callers(session: nox.Session) -> None:
    """Test who calls an agent, in each release that the adapters' rules name."""
    for name, (releases, needed, tests, chosen) in CALLERS.items():
        for release in releases:
            package = f"{name.split()[0]}=={release}"
            session.install("-e", ".", *group("test"), package, *needed)
            session.run("pytest", "-q", f"integrations_tests/adapters/{tests}", "-k", chosen)


@nox.session
def mem0_v1(session: nox.Session) -> None:
    """Compare our `Memory` with that of mem0 1.x, call by call."""
    check_apart(session, "mem0_v1")


@nox.session
@nox.parametrize("releases", MCP)
def mcp(session: nox.Session, releases: str) -> None:
    """Test the MCP server with each line of the SDK, of which the other extras allow one."""
    session.install("-e", ".[cli]", *group("test"), f"mcp{releases}")
    tests = [f"integrations_tests/test_{name}.py" for name in ("mcp_server", "signed_tokens")]
    session.run("pytest", *tests, *session.posargs)


@nox.session
def planted(session: nox.Session) -> None:
    """Plant deliberate faults in a copy of the source, one at a time: the tests catch each.

    It takes a quarter of an hour or more. Names choose some: `nox -s planted -- strands`.
    """
    session.install(
        "-e", ".[all,testing]", *group("test", "servers", "qdrant"), *needed_by(*ADAPTERS)
    )
    session.run("python", "-m", "integrations_tests.planted", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of the pages in build/site; a link that leads nowhere fails it."""
    session.install(*group("docs"))
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
    from_elsewhere = re.compile(
        r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=.?((?:https?:)?//[^\"'\s>]+)"
        r"|url\([\"']?((?:https?:)?//[^)]+)"
    )
    for page in Path("build/site").rglob("*"):
        if page.suffix in (".html", ".css"):
            for found in from_elsewhere.finditer(page.read_text("utf-8")):
                session.error(f"{page} loads {found[1] or found[2]}: nothing may be loaded")


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Measure what docs/benchmarks.md tells, and write it: about 20 minutes on a quiet machine."""
    session.install("-e", ".[all]", *group("benchmarks"))
    session.run("python", "benchmarks/report.py", *session.posargs)


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """Test the built wheel without any extra: the core is neutral and stands alone."""
    session.install(str(wheel(session)), *group("test"))
    session.run("pytest", CORE, *session.posargs)


@nox.session
@nox.parametrize("adapter", ADAPTERS)
def adapters(session: nox.Session, adapter: str) -> None:
    """Test one adapter against its real framework and no other."""
    session.install(f"{wheel(session)}[{adapter}]", *group("test"), *needed_by(adapter))
    session.run("pytest", *tests_of(adapter), *session.posargs)


@nox.session
@nox.parametrize("adapter", ADAPTERS)
def lowest(session: nox.Session, adapter: str) -> None:
    """Test one adapter with the oldest versions its extra allows."""
    # Two steps: the lowest versions of the test tools themselves are nobody's promise.
    session.install("uv")
    built = f"{wheel(session)}[{adapter}]"
    session.run("uv", "pip", "install", "--resolution", "lowest-direct", built)
    session.install(*group("test"), *needed_by(adapter))
    session.run("pytest", *tests_of(adapter), *session.posargs)


@nox.session
def together(session: nox.Session) -> None:
    """Install all extras side by side and import every adapter in one process."""
    session.install(f"{wheel(session)}[all]")
    # With all public names: an adapter may import what it needs when it is asked for them.
    session.run("python", "-c", "; ".join(f"from {package} import *" for package in PACKAGES))


@nox.session
def package(session: nox.Session) -> None:
    """Build what is uploaded, the wheel from the sdist, and check that an index can show it."""
    folder = Path(session.create_tmp()).resolve() / "package"
    shutil.rmtree(folder, ignore_errors=True)
    session.install("build", "twine>=6.1")  # 6.1: knows licences that are SPDX expressions
    session.run("python", "-m", "build", "--outdir", str(folder), silent=True)
    session.run("twine", "check", "--strict", *map(str, sorted(folder.iterdir())))


@nox.session
def constraints(session: nox.Session) -> None:
    """Write the newest versions that go together, of everything that the extras install."""
    session.install("uv")
    session.run(
        *("uv", "pip", "compile", "pyproject.toml", "--all-extras", "--universal", "--upgrade"),
        *("--python-version", PYTHONS[0], "--no-annotate", "--quiet"),
        *("--custom-compile-command", "nox -s constraints", "--output-file", CONSTRAINTS),
    )


@nox.session(python=PYTHONS[0])  # the oldest of these pips starts on no newer Python
def resolve(session: nox.Session) -> None:
    """Resolve every extra with old pips and the newest, each within a time; installs nothing."""
    built = wheel(session)
    extras = session.posargs or PROJECT["project"]["optional-dependencies"]
    install = [f"{session.bin}/python", "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    failed = []
    for pip in PIPS:
        session.install("--upgrade", pip)
        for extra in extras:
            # As README says: all of them together need the constraints.
            pinned = ["--constraint", CONSTRAINTS] if extra == "all" else []
            command = [*install, "--quiet", *pinned, f"{built}[{extra}]"]
            began = time.monotonic()
            try:
                # Not `session.run`, which has no limit of time.
                subprocess.run(command, timeout=RESOLVE_SECONDS, check=True)  # noqa: S603
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                failed.append(f"{pip} [{extra}]")
                session.warn(str(error))
            session.log(f"{pip} [{extra}]: {time.monotonic() - began:.0f} seconds")
    if failed:
        session.error("Not resolved: " + ", ".join(failed))


@nox.session
@nox.parametrize("engines", ["embedded", *SERVER_ENGINES])
def backends(session: nox.Session, engines: str) -> None:
    """Test one set of engines: the shared contracts, and whole memories on it."""
    if engines == "embedded":
        session.install("-e", ".", *group("test"))
        session.run("pytest", *EMBEDDED_ONLY, *session.posargs)
        return
    extras = ",".join(["cli", *SERVER_ENGINES])
    session.install("-e", f".[{extras}]", *group("test", "servers", "qdrant"))
    session.run("pytest", *SERVERS, "-k", f"{engines} or {BOTH}", *session.posargs)


def check_apart(session: nox.Session, name: str) -> None:
    """Test what a release needs that goes with none of the extras: its tests and its example."""
    session.install("-e", ".[cli]", *group("test", name))
    folder = Path("integrations_tests/adapters")
    own = folder.glob(f"test_{name}.py")
    tests = [*own, folder / "test_compatibility.py", "integrations_tests/test_examples.py"]
    session.run("pytest", *parallel(), *map(str, tests), "-k", name, *session.posargs)


def check_style(session: nox.Session) -> None:
    """Run the linter, the formatter and the import contracts, and find stale async twins."""
    session.run("python", TWINS, "--check")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", "--no-cache")
    session.run("python", "benchmarks/files_passed.py", "--check")


def check_types(session: nox.Session) -> None:
    """Check types inside, and that other type checkers can read those of the public names."""
    session.run("mypy", *TYPED)
    for package in PACKAGES:
        options = ("--verifytypes", package, "--ignoreexternal", "--outputjson")
        answer = session.run("pyright", *options, success_codes=[0, 1], silent=True)
        report = json.loads(str(answer))["typeCompleteness"]
        score = report["completenessScore"]
        session.log(f"{package}: the types of {score:.1%} of the public names are known")
        if score < PUBLIC_TYPES:
            session.error("Not known: " + ", ".join(unknown_types(report["symbols"])))


def unknown_types(symbols: list[dict[str, Any]]) -> list[str]:
    """Name the public names whose types another checker would have to guess."""
    return [one["name"] for one in symbols if one["isExported"] and not one["isTypeKnown"]]


def parallel() -> list[str]:
    """Spread tests over processes; each starts servers of its own, unless it is told which."""
    if "NEO4J_URI" in os.environ:
        return []
    # Twice as many as processors: tests wait for servers and processes half of their time.
    workers = min(4, 2 * (os.cpu_count() or 1))
    return [f"--numprocesses={workers}", "--dist=worksteal"]


def tests_of(adapter: str) -> list[str]:
    """List the files and folders with the tests of one adapter, and of the pages that need it."""
    folder = Path("integrations_tests/adapters")
    own = sorted(map(str, [*folder.glob(f"test_{adapter}*.py"), *folder.glob(adapter)]))
    return [*own, "integrations_tests/docs/test_code_blocks.py"]
