"""robots.txt (RFC 9309), and the records that many sites add to it."""

from comity.policies.formats.format import Format, WellKnown
from comity.policies.formats.robots.authoring import AUTHORING
from comity.policies.formats.robots.file import PATH
from comity.policies.formats.robots.reading import RobotsSite
from comity.policies.formats.robots.rules import RULES

FORMAT = Format(
    name="robots",
    rules=RULES,
    title="robots.txt",
    specification="RFC 9309",
    summary="all of it, and lines for Crawl-delay, Request-rate, Visit-time and Sitemap",
    # `refuses` is empty, because no page is fetched while robots.txt cannot be fetched.
    files=(
        WellKnown(
            PATH,
            restricts_access=True,
            refuses=(),
            unreachable="nothing of the site is fetched",
        ),
    ),
    read_site=RobotsSite,
    authoring=AUTHORING,
)
