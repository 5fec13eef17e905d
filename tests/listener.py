"""A server on loopback that handles each connection in a thread of its own."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Listener:
    """Listens from its creation on. Subclasses set their attributes first, and define `handle`."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def handle(self, sock: socket.socket, host: str) -> None:
        """Speak with a client. `host`: its address."""
        raise NotImplementedError

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, address = self._listener.accept()
                threading.Thread(target=self.handle, args=(sock, address[0]), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # it wakes the thread
        self._thread.join()
        self._listener.close()


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy octets until the source ends, and end the target."""
    with suppress(OSError):
        while octets := source.recv(65536):
            target.sendall(octets)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
