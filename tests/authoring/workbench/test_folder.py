"""Files are saved as a whole, only into the folder, and never over other changes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from comity.authoring.workbench.desk import desk_of
from comity.authoring.workbench.folder import ChangedError, Folder
from comity.cli import main
from comity.policies import PolicyError

ORIGIN = "https://example.com"
ROBOTS = ORIGIN + "/robots.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "news").mkdir(parents=True)
    (site / "robots.txt").write_bytes(b"User-agent: *\nDisallow:\n")
    (site / "news" / "a b.html").write_bytes(b"<p>x")
    return site


def test_a_file_is_saved_where_it_was_read(folder: Path) -> None:
    desk = desk_of(str(folder))
    page = ORIGIN + "/news/a%20b.html"
    state = desk.state().with_file(ROBOTS, b"User-agent: *\nDisallow: /\n").with_file(page, b"<p>y")
    assert desk.unsaved_urls(state) == [ROBOTS, page]
    for url in desk.unsaved_urls(state):
        desk.save(state, url)
    assert (folder / "robots.txt").read_bytes() == b"User-agent: *\nDisallow: /\n"
    assert (folder / "news" / "a b.html").read_bytes() == b"<p>y"
    assert desk.unsaved_urls(state) == []
    assert sorted(path.name for path in folder.iterdir()) == ["news", "robots.txt"]


def test_a_new_file_is_made_with_its_folder(folder: Path) -> None:
    desk = desk_of(str(folder))
    desk.save(
        desk.state().with_file(ORIGIN + "/.well-known/tdmrep.json", b"[]"),
        ORIGIN + "/.well-known/tdmrep.json",
    )
    assert (folder / ".well-known" / "tdmrep.json").read_bytes() == b"[]"


def test_what_somebody_has_changed_meanwhile_is_not_written_over(folder: Path) -> None:
    desk = desk_of(str(folder))
    state = desk.state().with_file(ROBOTS, b"mine")
    (folder / "robots.txt").write_bytes(b"theirs")
    with pytest.raises(ChangedError, match="has changed on the disk"):
        desk.save(state, ROBOTS)
    assert (folder / "robots.txt").read_bytes() == b"theirs"
    assert desk.reread(state, ROBOTS).files[ROBOTS].body == b"theirs"
    desk.save(state, ROBOTS, is_sure=True)
    assert (folder / "robots.txt").read_bytes() == b"mine"


@pytest.mark.parametrize("change", ["made", "removed"])
def test_a_file_that_was_made_or_removed_meanwhile_has_changed(folder: Path, change: str) -> None:
    desk = desk_of(str(folder))
    url = ORIGIN + ("/ai.txt" if change == "made" else "/robots.txt")
    if change == "made":
        (folder / "ai.txt").write_bytes(b"theirs")
    else:
        (folder / "robots.txt").unlink()
    with pytest.raises(ChangedError):
        desk.save(desk.state().with_file(url, b"mine"), url)


@pytest.mark.parametrize(
    "path", ["/../secret", "/news/../../secret", "/link/secret", "/to-file", "/", "", "/a\0b"]
)
def test_nothing_outside_the_folder_is_read_or_written(folder: Path, path: str) -> None:
    outside = folder.parent / "secret"
    outside.write_bytes(b"secret")
    (folder / "link").symlink_to(folder.parent)
    (folder / "to-file").symlink_to(outside)
    with pytest.raises(PolicyError):
        Folder(folder, ORIGIN).save(ORIGIN + path, b"written", expected=None, is_sure=True)
    with pytest.raises(PolicyError):
        Folder(folder, ORIGIN).read(ORIGIN + path)
    assert outside.read_bytes() == b"secret"


def test_the_way_a_file_may_be_read_stays(folder: Path) -> None:
    (folder / "robots.txt").chmod(0o640)
    desk = desk_of(str(folder))
    desk.save(desk.state().with_file(ROBOTS, b"mine"), ROBOTS)
    assert (folder / "robots.txt").stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_written_is_said(folder: Path) -> None:
    desk = desk_of(str(folder))
    (folder / "ai.txt").mkdir()
    with pytest.raises(PolicyError, match=r"ai\.txt"):
        desk.save(
            desk.state().with_file(ORIGIN + "/ai.txt", b"x"), ORIGIN + "/ai.txt", is_sure=True
        )


EXPECTATIONS = ORIGIN + "/expectations.toml"


def test_sentences_are_saved_as_the_file_of_comity_check(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = desk_of(str(folder))
    assert (desk.state().choices.expectations, desk.notes) == ("", ())
    state = desk.state().with_choices(expectations="everybody may fetch /\n\nGPTBot may fetch /x")
    assert desk.has_unsaved_sentences(state)
    desk.save_sentences(state)
    assert not desk.has_unsaved_sentences(state)
    assert desk.state().choices.expectations == state.choices.expectations
    path = folder / "expectations.toml"
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "2 sentences hold, 0 fail.\n"
    again = desk_of(str(folder)).state()
    assert again.choices.expectations == "everybody may fetch /\nGPTBot may fetch /x"
    desk.save_sentences(desk.state().with_choices(expectations=""))
    assert tomllib.loads(path.read_text())["expectations"] == []


def test_other_keys_and_comments_of_the_file_stay(folder: Path) -> None:
    path = folder / "expectations.toml"
    path.write_text(
        '# ours\ndate = 2026-12-01\nagent = "GPTBot"\nexpectations = [\n  # ]\n'
        '  "may we fetch /a]",\n]\norigin = "https://example.com" # here\n'
    )
    assert "is not understood" in desk_of(str(folder)).notes[0]
    path.write_text(path.read_text().replace("may we fetch", "everybody may fetch"))
    desk = desk_of(str(folder))
    assert desk.state().choices.expectations == "everybody may fetch /a]"
    desk.save_sentences(desk.state().with_choices(expectations='"Sogou web spider" may fetch /'))
    assert path.read_text() == (
        '# ours\ndate = 2026-12-01\nagent = "GPTBot"\nexpectations = [\n'
        '  "\\"Sogou web spider\\" may fetch /",\n]\norigin = "https://example.com" # here\n'
    )


def test_sentences_are_not_written_over_other_changes(folder: Path) -> None:
    desk = desk_of(str(folder))
    state = desk.state().with_choices(expectations="everybody may fetch /")
    path = folder / "expectations.toml"
    path.write_text('expectations = ["GPTBot may fetch /"]')
    with pytest.raises(ChangedError, match="has changed on the disk"):
        desk.save_sentences(state)
    assert desk.reread_sentences(state).choices.expectations == "GPTBot may fetch /"
    path.write_text('expectations = ["ExampleBot may fetch /"]')
    desk.save_sentences(state, is_sure=True)
    assert path.read_text() == 'expectations = [\n  "everybody may fetch /",\n]'
    path.write_text("expectations = [")
    with pytest.raises(PolicyError, match="is not TOML"):
        desk.save_sentences(state, is_sure=True)
    assert path.read_text() == "expectations = ["


def test_a_sentence_that_is_not_understood_is_not_saved(folder: Path) -> None:
    desk = desk_of(str(folder))
    with pytest.raises(PolicyError, match="`eat` is no use: write "):
        desk.save_sentences(desk.state().with_choices(expectations="GPTBot may eat /"))
    assert not (folder / "expectations.toml").exists()
