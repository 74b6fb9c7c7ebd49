"""A Qdrant server of our own for tests: the executable `qdrant`, where it is on the PATH."""

import os
import shutil
import socket
import urllib.request
from pathlib import Path

from .server_process import Server


def is_possible() -> bool:
    """Tell whether this machine can run one."""
    return shutil.which("qdrant") is not None


class QdrantProcess(Server):
    """A server on two ports, one for each protocol."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, ports=2)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def grpc_port(self) -> int:
        return self._ports[1]

    def _command(self) -> list[str]:
        return ["qdrant"]

    def _environment(self) -> dict[str, str]:
        settings = {
            "SERVICE__HOST": "127.0.0.1",
            "SERVICE__HTTP_PORT": str(self.port),
            "SERVICE__GRPC_PORT": str(self.grpc_port),
            "STORAGE__STORAGE_PATH": str(self._home / "storage"),
            "STORAGE__SNAPSHOTS_PATH": str(self._home / "snapshots"),
            "TELEMETRY_DISABLED": "true",
        }
        return os.environ | {f"QDRANT__{name}": value for name, value in settings.items()}

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.grpc_port), timeout=5).close()
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False
