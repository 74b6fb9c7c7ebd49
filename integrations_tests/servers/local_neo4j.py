"""A Neo4j server of our own for tests: a Java process, its jars fetched from Maven Central once."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent / "neo4j"
HOW = (
    "no Neo4j: set NEO4J_URI (with NEO4J_USER and NEO4J_PASSWORD), or install docker and"
    " testcontainers, or Java 17 and Maven (Debian: openjdk-17-jdk-headless maven)"
)
_OPENED = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")  # Neo4j's own needs
_SPARING = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC")
_PATIENCE = 120.0  # seconds for a start on a busy machine


def is_possible() -> bool:
    """Tell whether this machine can run one."""
    return shutil.which("java") is not None and (
        shutil.which("mvn") is not None or (_jars() / ".complete").exists()
    )


class LocalNeo4j:
    """A server on a folder and a port of its own; killing it leaves the folder as it is."""

    def __init__(self, home: Path) -> None:
        self._home = home
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port: int = one.getsockname()[1]
        self.start()

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and return when it answers."""
        self._home.mkdir(parents=True, exist_ok=True)
        opened = [f"--add-opens={one}=ALL-UNNAMED" for one in _OPENED]
        given = [str(self._home), str(self.port)]
        command = ["java", *_SPARING, *opened, "-cp", f"{_fetch()}/*"]
        with (self._home / "out.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(HERE / "Serve.java"), *given], stdout=log, stderr=log
            )
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError((self._home / "out.log").read_text()[-4000:])
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


def _jars() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "commonplace-tests" / "neo4j-5.26.31"


def _fetch() -> Path:
    jars = _jars()
    if not (jars / ".complete").exists():
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        pom = str(HERE / "pom.xml")
        command = ["mvn", "-q", "-B", "-f", pom, *goal, f"-DoutputDirectory={jars}"]
        subprocess.run(command, check=True)
        (jars / ".complete").touch()
    return jars
