"""Access to the workbench, tested over plain sockets, as any program and page may try."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.authoring.workbench.workbench_process import Workbench, workbench

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport="
PATHS = ["/", "/_nicegui/x", SOCKET + "polling", "/openapi.json"]


pytestmark = pytest.mark.slow  # each test process would start its own server


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with workbench(folder=tmp_path_factory.mktemp("bench")) as started:
        yield started


def ask(
    bench: Workbench, path: str, method: str = "GET", **fields: str | None
) -> http.client.HTTPResponse:
    """Send the request of the user's browser, with these fields changed. None: no field."""
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{bench.port}",
        "Cookie": cookie(bench),
        "Sec-Fetch-Site": "same-origin",
    }
    headers |= {"Origin": bench.origin} if method != "GET" else {}
    headers |= {name.replace("_", "-"): value for name, value in fields.items()}
    connection = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=300)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    response.body = response.read().decode("utf-8", "replace")  # type: ignore[attr-defined]
    connection.close()
    return response


def cookie(bench: Workbench) -> str:
    return f"comity-workbench-{bench.port}={bench.token}"


def body_of(response: http.client.HTTPResponse) -> str:
    return str(response.body)  # type: ignore[attr-defined]


def test_its_user_is_let_in(bench: Workbench) -> None:
    assert ask(bench, "/").status == 200


def test_the_token_goes_from_the_address_into_a_cookie_that_no_script_reads(
    bench: Workbench,
) -> None:
    answer = ask(bench, f"/?token={bench.token}", Cookie=None, Sec_Fetch_Site="none")
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert answer.headers["Set-Cookie"] == cookie(bench) + "; Path=/; HttpOnly; SameSite=Strict"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "comity-workbench-{port}=",
        "comity-workbench-{port}=" + "A" * 43,
        "x=" + "y" * 20_000,
    ],
)
def test_without_the_token_nothing_is_said(bench: Workbench, path: str, value: str | None) -> None:
    answer = ask(bench, path, Cookie=value and value.format(port=bench.port))
    assert answer.status == 403
    assert "comity workbench" in body_of(answer)


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=A", "?token={token}&token=A", "?Token={token}"]
)
def test_a_wrong_token_in_the_address_lets_nobody_in(bench: Workbench, query: str) -> None:
    answer = ask(bench, "/" + query.format(token=bench.token), Cookie=None)
    assert (answer.status, answer.headers["Set-Cookie"]) == (403, None)


@pytest.mark.parametrize("path", [*PATHS, "/?token={token}"])
@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost:{port}",
        "evil.example:{port}",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
    ],
)
def test_a_name_that_was_made_to_lead_here_leads_nowhere(
    bench: Workbench, path: str, host: str | None
) -> None:
    """DNS rebinding: the browser treats the other page as one of this host, and sends its name."""
    answer = ask(bench, path.format(token=bench.token), Host=host and host.format(port=bench.port))
    assert answer.status in (400, 403)
    assert answer.headers["Set-Cookie"] is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://localhost:{port}",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:1",
        "",
    ],
)
def test_no_other_page_may_send_anything(bench: Workbench, origin: str) -> None:
    for method, path in (("GET", "/"), ("POST", SOCKET + "polling"), ("OPTIONS", "/")):
        assert ask(bench, path, method, Origin=origin.format(port=bench.port)).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_what_could_change_something_says_where_it_comes_from(
    bench: Workbench, method: str
) -> None:
    assert ask(bench, SOCKET + "polling", method, Origin=None).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_no_other_page_may_load_a_part_of_it(bench: Workbench, site: str) -> None:
    """A server on another port of this machine is same-site, so browsers send the cookies."""
    assert ask(bench, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
    assert ask(bench, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 200


def test_a_socket_opens_for_its_own_page(bench: Workbench) -> None:
    with open_socket(bench) as opened:
        assert str(opened.recv()).startswith("0{")


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": None},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:{port}"},
        {"origin": "null"},
        {"cookie": ""},
        {"cookie": "comity-workbench-{port}=AAAA"},
        {"host": "evil.example:{port}"},
        {"host": "localhost:{port}"},
    ],
)
def test_a_socket_opens_for_nobody_else(bench: Workbench, wrong: dict[str, str | None]) -> None:
    given = {name: value and value.format(port=bench.port) for name, value in wrong.items()}
    with pytest.raises(InvalidStatus) as refused, open_socket(bench, **given):
        pass
    assert refused.value.response.status_code == 403


def open_socket(bench: Workbench, **given: str | None) -> ClientConnection:
    fields = {
        "origin": bench.origin,
        "cookie": cookie(bench),
        "host": f"127.0.0.1:{bench.port}",
    } | given
    return connect(
        f"ws://{fields['host']}{SOCKET}websocket",
        origin=Origin(fields["origin"]) if fields["origin"] else None,
        additional_headers={"Cookie": fields["cookie"] or ""},
        sock=socket.create_connection(("127.0.0.1", bench.port), timeout=300),
        proxy=None,
        open_timeout=300,
    )


def test_the_page_may_load_and_send_nothing_elsewhere(bench: Workbench) -> None:
    answer = ask(bench, "/")
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert (
        policy["default-src"]
        == policy["frame-src"]
        == policy["base-uri"]
        == policy["form-action"]
        == policy["frame-ancestors"]
        == "'none'"
    )
    assert policy["connect-src"] == f"'self' ws://127.0.0.1:{bench.port}"
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", body_of(answer))


def test_it_listens_on_this_machine_only(bench: Workbench) -> None:
    tables = (
        Path(path).read_text(encoding="utf-8").splitlines()[1:]
        for path in ("/proc/net/tcp", "/proc/net/tcp6")
    )
    # The state LISTEN.
    listening = [line.split()[1] for table in tables for line in table if line.split()[3] == "0A"]
    assert [address for address in listening if address.endswith(f":{bench.port:04X}")] == [
        f"0100007F:{bench.port:04X}"
    ]


def test_a_port_that_is_taken_is_said(bench: Workbench, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from comity.cli import main; sys.exit(main())",
        "workbench",
    ]
    done = subprocess.run(
        [*command, "--port", str(bench.port)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "write another one, or --port 0" in done.stderr


@pytest.mark.parametrize("target", ["no-such-folder", "ftp://example.com/"])
def test_what_cannot_be_opened_is_said(tmp_path: Path, target: str) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from comity.cli import main; sys.exit(main())",
        "workbench",
        target,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr


WITHOUT = """
import sys
sys.modules["nicegui"] = None
from comity.cli import main
sys.exit(main(["workbench"]))
"""


@pytest.mark.usefixtures("new_processes")
def test_without_the_library_its_extra_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == 'comity workbench: the page needs nicegui: pip install "comity[workbench]"\n'
    )
