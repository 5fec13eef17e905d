"""`comity key`: a new key, and the directory with its public part."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from comity.cli import main
from comity.signatures.keys import read_key_set, read_private_key, thumbprint
from tests.signatures.test_vectors import verify_directory_of

pytestmark = pytest.mark.requirement("BOT-1")
WELL_KNOWN = ".well-known/http-message-signatures-directory"


def test_a_new_key_and_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["key", "new", "key.pem"]) == 0
    assert main(["key", "new", "next.pem"]) == 0
    path = tmp_path / "key.pem"
    keys = [read_private_key("KEY", tmp_path / name) for name in ("key.pem", "next.pem")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = capsys.readouterr().out
    assert f"key.pem has the private key {thumbprint(keys[0].public_key())}." in said
    assert f'COMITY_KEY = "{path}"' in said
    arguments = ["key.pem", "next.pem", "--url", "https://bot.example.org", "--folder", "public"]
    assert main(["key", "directory", *arguments]) == 0
    said, told = capsys.readouterr()
    assert f"public/{WELL_KNOWN} is written. Let the host send it with these fields:" in told
    body = (tmp_path / "public" / WELL_KNOWN).read_bytes()
    assert set(read_key_set(body)) == {thumbprint(key.public_key()) for key in keys}
    fields = dict(line.split(": ", 1) for line in said.splitlines())
    assert fields["Content-Type"] == "application/http-message-signatures-directory+json"
    verify_directory_of("https://bot.example.org", fields, body, *keys)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["new", "key.pem"], "comity key: `key.pem` exists, and may be a key in use: write"),
        (
            ["directory", "nowhere.pem", "--url", "https://a.example", "--folder", "public"],
            "comity key: FILE `nowhere.pem` cannot be read: No such file or directory:",
        ),
        (
            ["directory", "key.pem", "--url", "http://a.example", "--folder", "public"],
            "comity key: --url `http://a.example` is not an https URL: write",
        ),
        (
            ["directory", "key.pem", "--url", "https://a.example/keys", "--folder", "public"],
            "comity key: --url `https://a.example/keys` is not an address of a host: write",
        ),
        (
            ["directory", "key.pem", "--url", "https://a.example", "--folder", "key.pem"],
            "comity key: key.pem/.well-known/http-message-signatures-directory cannot be written",
        ),
        (
            ["directory", "key.pem", "--url", "https://a.example", "--folder", "f", "--days", "0"],
            "comity key: --days `0`: write a number from 1 to 366",
        ),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["key", "new", "key.pem"]) == 0
    capsys.readouterr()
    assert main(["key", *arguments]) == 2
    said, told = capsys.readouterr()
    assert (said, told.count("\n")) == ("", 1)
    assert told.startswith(complaint)
