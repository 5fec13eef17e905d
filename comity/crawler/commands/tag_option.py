"""`--tag`: the place of the tags of a dataset. The default is COMITY_TAG of the project."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from scrapy.settings import BaseSettings

from comity.dataset.records import DatasetError
from comity.dataset.sidecar import Sidecar
from comity.dataset.tags.setting import OFF, SIDECAR, TagSetting
from comity.dataset.tags.sources import GUESSED, InField, TagSource
from comity.gate.options.declared import TAG
from comity.policies import PolicyError


def add_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tag",
        metavar="FIELD|sidecar:FILE",
        help="place of the tags (default: COMITY_TAG; if it is not set, the one field that looks"
        " like a tag)",
    )


def tag_source(opts: Namespace, settings: BaseSettings) -> TagSource:
    """Return the source of the tags. PolicyError or DatasetError: the option is invalid."""
    setting = TagSetting.parse(opts.tag, subject="--tag") if opts.tag else TAG.read(settings)
    if setting.kind == OFF:
        if opts.tag:
            raise PolicyError("--tag `off` is not a place: without tags nothing is permitted")
        return GUESSED  # the tags of an export, or of a crawl before COMITY_TAG was set
    if setting.kind != SIDECAR:
        return GUESSED if setting == TagSetting() and not opts.tag else InField(setting.name)
    if "%(" in setting.name or "://" in setting.name.removeprefix("file://"):
        raise DatasetError(
            f"COMITY_TAG `{setting}` names no file on this machine: write --tag sidecar:FILE"
        )
    return Sidecar(Path(setting.name.removeprefix("file://")))
