"""The parts of the packaging that setup.cfg cannot state."""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.egg_info import egg_info
from setuptools.config.setupcfg import read_configuration


class EggInfo(egg_info):
    def save_version_info(self, filename: str) -> None:
        """Leave setup.cfg as it is: setuptools writes it into sources without its comments."""


# An index shows README.md outside of the repository. The links of that copy are absolute: they lead
# to the files of the released version.
metadata = read_configuration("setup.cfg")["metadata"]
files = f"{metadata['url']}/blob/v{metadata['version']}"
readme = Path("README.md").read_text("utf-8")
setup(
    cmdclass={"egg_info": EggInfo},
    long_description=re.sub(r"\]\((?!https?:|#)", f"]({files}/", readme),
    project_urls={
        "Documentation": f"{files}/docs/README.md",
        "Changes": f"{files}/CHANGELOG.md",
        "Issues": f"{metadata['url']}/issues",
    },
)
