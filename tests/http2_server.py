"""A server on loopback that speaks HTTP/2, and HTTP/1.1 to clients that do not. It notes what comes, and judges nothing."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from comity.policies.formats import WELL_KNOWN
from tests.listener import Listener


class Stream(NamedTuple):
    """A request as it came over HTTP/2."""

    fields: tuple[tuple[str, str], ...]  # pseudo-header fields too, in their order

    def field(self, name: str) -> str:
        return ", ".join(value for other, value in self.fields if other == name)


class Http2Server(Listener):
    """`routes`: path without query -> text. Other paths answer 404."""

    def __init__(self, certificate: Path, routes: dict[str, str], host: str = "127.0.0.1") -> None:
        self.routes = routes
        self.streams: list[Stream] = []  # without those for policy files
        self.connections = 0  # over which HTTP/2 was spoken
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        super().__init__(host)
        self.origin = f"https://{host}:{self.port}"

    def handle(self, sock: socket.socket, host: str) -> None:
        with (
            suppress(OSError, ProtocolError),
            self._context.wrap_socket(sock, server_side=True) as secured,
        ):
            if secured.selected_alpn_protocol() == "h2":
                self.connections += 1
                self._speak_http2(secured)
            else:
                self._speak_http1(secured)

    def _answer(self, path: str) -> tuple[int, bytes]:
        text = self.routes.get(path.partition("?")[0])
        return (404, b"not found") if text is None else (200, text.encode())

    def _speak_http1(self, sock: ssl.SSLSocket) -> None:
        received = b""
        while data := sock.recv(65536):
            received += data
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                path = head.split(b" ")[1].decode("latin-1")
                assert path.endswith(WELL_KNOWN), f"{path} did not come over HTTP/2"
                status, body = self._answer(path)
                fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                sock.sendall(f"HTTP/1.1 {status} Status\r\n{fields}\r\n".encode() + body)

    def _speak_http2(self, sock: ssl.SSLSocket) -> None:
        """What h2 would refuse is noted too: a proxy in front of a server may pass it on."""
        connection = H2Connection(
            H2Configuration(
                client_side=False, header_encoding="latin-1", validate_inbound_headers=False
            )
        )
        connection.initiate_connection()
        sock.sendall(connection.data_to_send())
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    stream = Stream(tuple((str(name), str(value)) for name, value in event.headers))
                    self.streams.append(stream)
                    status, body = self._answer(stream.field(":path"))
                    head = [
                        (":status", str(status)),
                        ("content-type", "text/html"),
                        ("content-length", str(len(body))),
                    ]
                    connection.send_headers(event.stream_id, head)
                    connection.send_data(event.stream_id, body, end_stream=True)
            sock.sendall(connection.data_to_send())
