"""Proxy to a Neo4j server that drops a connection between commit and answer, or all of them."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_COMMIT = b"\x00\x02\xb0\x12\x00\x00"  # a message of two bytes: no fields, signature 0x12


class Cut:
    """Forwards connections to where a URL points; once armed, it cuts the next one that commits.

    Attributes:
        url: the same, this way.
        happened: a connection was cut at its commit.
        is_away: whether new connections are dropped at once; see `drop`.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname, parts.port)
        self._is_armed = False
        self.happened = False
        self.is_away = False
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        who, at, _ = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=f"{who}{at}127.0.0.1:{self.port}").geturl()
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in (self._door, *self._open):
            _end(one)

    def arm(self) -> None:
        """Cut the connection of the next commit."""
        self._is_armed = True

    def drop(self) -> None:
        """Drop all connections, and new ones until `is_away` is False again."""
        self.is_away = True
        while self._open:
            _end(self._open.pop())

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            if self.is_away:
                _end(client)
                continue
            server = socket.create_connection(self._place)
            self._open += [client, server]
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._back, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 20):
                if self._is_cut(data):
                    _end(client)
                    server.sendall(data)  # it is made all the same
                    return
                server.sendall(data)
        except OSError:
            return
        _end(server)

    def _is_cut(self, data: bytes) -> bool:
        if not (self._is_armed and _COMMIT in data):
            return False
        self._is_armed = False
        self.happened = True
        return True

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            return


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side was first
        one.shutdown(socket.SHUT_RDWR)
    one.close()
