"""The commands of `comity`, each with one line of help. This module imports none of the work.

Add a command here, in one line. Its `target` has one of two forms:

    "package.module"        a module with `add_options(parser)` and `run(options) -> exit status`
    "package.module:Class"  a command of Scrapy, with the settings of the project around it

`scrapy` has a command of Scrapy too if `comity.crawler.commands.listed` and the entry points in
setup.cfg name it.
"""

from __future__ import annotations

from typing import NamedTuple

CRAWLS = "Crawls"
RESULTS = "Results of crawls"
POLICIES = "Policies of a site"
INSTALLATION = "This installation"


class Command(NamedTuple):
    """A command of `comity`.

    Attributes:
        group: The heading above the command in `comity --help`.
        summary: The line of help.
        target: The module or the class that does the work. It is imported when the command runs.
    """

    group: str
    summary: str
    target: str

    @property
    def by_scrapy(self) -> bool:
        """True if Scrapy runs the command."""
        return ":" in self.target


_SCRAPY = "comity.crawler.commands"
_AUTHORING = "comity.authoring.commands"
_PROJECT = "comity.project"
COMMANDS = {
    "crawl": Command(CRAWLS, "Run a spider by its name", f"{_SCRAPY}.crawl:CrawlCommand"),
    "runspider": Command(CRAWLS, "Run the spider in a Python file", f"{_SCRAPY}.crawl:RunSpider"),
    "frontier": Command(
        CRAWLS,
        "Show, pause, resume, end or delete a crawl by several workers",
        f"{_SCRAPY}.frontier:FrontierCommand",
    ),
    "demo": Command(
        CRAWLS, "Serve a demonstration site on this machine", f"{_SCRAPY}.demo:DemoCommand"
    ),
    "startproject": Command(
        CRAWLS, "Create a Scrapy project that uses comity", f"{_PROJECT}.startproject"
    ),
    "profile": Command(
        CRAWLS, "Print the settings for a common wish, with the reasons", f"{_PROJECT}.profile"
    ),
    "key": Command(
        CRAWLS, "Create a key with which a crawler signs its requests", f"{_PROJECT}.key"
    ),
    "report": Command(
        RESULTS,
        "Write a page about a crawl or its items, or compare two pages",
        f"{_SCRAPY}.report:ReportCommand",
    ),
    "dataset": Command(
        RESULTS,
        "Tag, export, expire, count or verify the records of a dataset",
        f"{_SCRAPY}.dataset.command:DatasetCommand",
    ),
    "policy": Command(
        POLICIES,
        "Say what a site permits at a URL, by its policies",
        f"{_SCRAPY}.policy:PolicyCommand",
    ),
    "new": Command(
        POLICIES, 'Write the policy files for a wish, such as "no training"', f"{_AUTHORING}.new"
    ),
    "explain": Command(
        POLICIES, "Say in sentences what the policy files of a site mean", f"{_AUTHORING}.explain"
    ),
    "check": Command(
        POLICIES,
        'Test sentences, such as "GPTBot must not fetch /x"',
        f"{_AUTHORING}.check",
    ),
    "lint": Command(POLICIES, "Find mistakes in policy files, and mend them", f"{_AUTHORING}.lint"),
    "rule": Command(
        POLICIES, "Explain a rule: its reason, its remedy, an example", f"{_AUTHORING}.rule"
    ),
    "languageserver": Command(
        POLICIES, "Help in an editor (Language Server Protocol)", f"{_AUTHORING}.languageserver"
    ),
    "workbench": Command(
        POLICIES, "Write policies in the browser, and see their effect", f"{_AUTHORING}.workbench"
    ),
    "doctor": Command(
        INSTALLATION,
        "Check the installation, the settings, and what a crawl needs",
        "comity.doctor.command:DoctorCommand",
    ),
    "completion": Command(
        INSTALLATION, "Print a script that completes commands in a shell", "comity.completion"
    ),
}
