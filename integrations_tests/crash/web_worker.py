"""Worker of a web server with a memory: `web_worker.py FOLDER` prints its port and serves.

`POST /learn` remembers its body, `POST /later` too but answers when it is accepted, and
`POST /recall` answers with the texts that its body finds, one a line.
"""

import http.client
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")


class Worker:
    """A running worker, in a `with` block."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, __file__, str(folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self._port = int(lines.readline())

    def ask(self, path: str, body: str) -> list[str]:
        """Make a request; return the lines of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        connection.request("POST", path, body.encode())
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text
        return text.splitlines()

    def wait_for(self, text: str, seconds: float) -> None:
        """Wait until it recalls a text that another worker had accepted."""
        until = time.monotonic() + seconds
        while text not in self.ask("/recall", text) and time.monotonic() < until:
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def main(folder: str) -> None:
    """Serve until killed."""
    memory = Memory.open(folder, embedder=HashEmbedder())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, lines = 200, list[str]()
            try:
                if self.path == "/recall":
                    lines = [one.record.text for one in memory.search(text, ALICE, top_k=10)]
                else:
                    memory.add(text, ALICE, wait=self.path == "/learn")
            except Exception as error:  # noqa: BLE001 -- told to the client
                status, lines = 500, [f"{type(error).__name__}: {error}"]
            body = "\n".join(lines).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    os.write(1, f"{server.server_port}\n".encode())
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
