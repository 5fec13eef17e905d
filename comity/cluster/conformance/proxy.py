"""A TCP connection to a server that can lose answers: the server has done what it was asked."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress

SIZE = 2**16


class Proxy:
    """A port of 127.0.0.1 that leads to a server.

    Attributes:
        port: The port.
        lost: The number of answers that were lost.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lost = 0
        self._keep: int | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answer(self, after: int) -> None:
        """Lose one answer: the one after so many more, with its connection."""
        with self._lock:
            self._keep = after

    def pass_all(self) -> None:
        """Lose no more answers."""
        with self._lock:
            self._keep = None

    def close(self) -> None:
        self._is_closed = True
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            with self._lock:
                self._sockets |= {client, server}
            try:
                self._pass_on(client, server)
            finally:
                with self._lock:
                    self._sockets -= {client, server}

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(SIZE)  # type: ignore[union-attr]
                    if not data or (key.fileobj is server and self._loses()):
                        return
                    (client if key.fileobj is server else server).sendall(data)

    def _loses(self) -> bool:
        with self._lock:
            if self._keep is None:
                return False
            self._keep -= 1
            if self._keep >= 0:
                return False
            self._keep = None
            self.lost += 1
            return True
