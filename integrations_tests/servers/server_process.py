"""Server process of a test, on a folder and ports of its own."""

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Server:
    """A server on a folder and ports of its own; killing it leaves the folder as it is."""

    patience = 60.0  # seconds for a start on a busy machine

    def __init__(self, home: Path, ports: int) -> None:
        self._home = home
        self._ports = free_ports(ports)
        self.start()

    @property
    def port(self) -> int:
        return self._ports[0]

    def start(self) -> None:
        """Start it and return when it answers."""
        self._home.mkdir(parents=True, exist_ok=True)
        log = self._home / "out.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command(), cwd=self._home, env=self._environment(), stdout=out, stderr=out
            )
        deadline = time.monotonic() + self.patience
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(log.read_text()[-4000:])
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _command(self) -> Sequence[str]:
        raise NotImplementedError

    def _environment(self) -> Mapping[str, str] | None:
        return None

    def _answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


def free_ports(number: int) -> list[int]:
    """Find ports that nobody listens on."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in doors]
    for one in doors:
        one.close()
    return ports
