"""Help for authors of Clean-param lines."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.clean_param.rules import SPEC
from comity.policies.formats.fixes import delete_line, write_proposed

AUTHORING = Authoring(
    directives=(
        Directive(
            "Clean-param",
            SPEC,
            "Parameters that make no other page, for URLs that begin with the path: crawlers that "
            "know the line fetch such URLs once",
            "parameters path",
        ),
    ),
    values={
        "parameters": {
            "utm_source&utm_medium&utm_campaign": "marks of campaigns",
            "sid": "the number of a session",
        },
        "path": {"/": "the whole site", "/forum/*.php": "URLs that begin so"},
    },
    fixes={"clean-param.names": delete_line, "clean-param.path": write_proposed},
)
