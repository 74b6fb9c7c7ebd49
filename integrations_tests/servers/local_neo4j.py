"""A Neo4j server of our own for tests: a Java process, its jars fetched from Maven Central once."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from .server_process import Server

HERE = Path(__file__).parent / "neo4j"
HOW = (
    "no Neo4j: set NEO4J_URI (with NEO4J_USER and NEO4J_PASSWORD), or install docker and"
    " testcontainers, or Java 17 and Maven (Debian: openjdk-17-jdk-headless maven)"
)
_OPENED = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")  # Neo4j's own needs
# It lives for minutes, most of them planning: code that is compiled quickly is worth more to it
# than code that is compiled well.
_SPARING = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Nor need the bytecode of its jars be verified at every start.
_TRUSTING = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


def is_possible() -> bool:
    """Tell whether this machine can run one."""
    return shutil.which("java") is not None and (
        shutil.which("mvn") is not None or (_jars() / ".complete").exists()
    )


class LocalNeo4j(Server):
    """A Community edition on one port."""

    patience = 120.0

    def __init__(self, home: Path) -> None:
        super().__init__(home, ports=1)

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        opened = [f"--add-opens={one}=ALL-UNNAMED" for one in _OPENED]
        given = [str(HERE / "Serve.java"), str(self._home), str(self.port)]
        return ["java", *_SPARING, *_TRUSTING, *opened, "-cp", f"{_fetch()}/*", *given]


def _jars() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "commonplace-tests" / "neo4j-5.26.31"


def _fetch() -> Path:
    jars = _jars()
    jars.mkdir(parents=True, exist_ok=True)
    with (jars / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes one fetches
        if not (jars / ".complete").exists():
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            pom = str(HERE / "pom.xml")
            command = ["mvn", "-q", "-B", "-f", pom, *goal, f"-DoutputDirectory={jars}"]
            subprocess.run(command, check=True)
            (jars / ".complete").touch()
    return jars
