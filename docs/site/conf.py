"""The configuration of the documentation site, for Sphinx. `make site` builds the site."""

import sys
from configparser import ConfigParser
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from comity import __version__  # noqa: E402

_setup = ConfigParser()
_setup.read(ROOT / "setup.cfg", "utf-8")

project = "comity"
author = _setup["metadata"]["author"]
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "pages"]
root_doc = "README"
# `make docs` writes the page for the repository alone: it names tests.
exclude_patterns = ["conformance.md", "site"]

# Sections can be linked as on GitHub. `pages.slug` makes their names.
myst_heading_anchors = 4
myst_heading_slug_func = "pages.slug"
myst_enable_extensions = ["attrs_inline"]
# The repository, for links to files that are no pages.
repository = f"{_setup['metadata']['url']}/blob/v{release}"

# Docstrings have single backticks around code, as Markdown has.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
add_module_names = False
napoleon_use_ivar = True

html_title = f"comity {release}"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # a page that is no server's cannot fetch others
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/versions.html",
        "sidebar/scroll-end.html",
    ]
}
