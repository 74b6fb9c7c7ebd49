"""A Qdrant server of our own for tests: the executable `qdrant`, where it is on the PATH."""

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

_PATIENCE = 60.0  # seconds for a start on a busy machine


def is_possible() -> bool:
    """Tell whether this machine can run one."""
    return shutil.which("qdrant") is not None


class QdrantProcess:
    """A server on a folder and two ports of its own; killing it leaves the folder as it is."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.port, self.grpc_port = _free_ports(2)
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and return when it answers."""
        settings = {
            "SERVICE__HOST": "127.0.0.1",
            "SERVICE__HTTP_PORT": str(self.port),
            "SERVICE__GRPC_PORT": str(self.grpc_port),
            "STORAGE__STORAGE_PATH": str(self._home / "storage"),
            "STORAGE__SNAPSHOTS_PATH": str(self._home / "snapshots"),
            "TELEMETRY_DISABLED": "true",
        }
        given = os.environ | {f"QDRANT__{name}": value for name, value in settings.items()}
        with (self._home / "out.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["qdrant"], cwd=self._home, env=given, stdout=log, stderr=log
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
        try:
            socket.create_connection(("127.0.0.1", self.grpc_port), timeout=5).close()
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False


def _free_ports(number: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in doors]
    for one in doors:
        one.close()
    return ports
