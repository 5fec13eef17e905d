"""robots.txt (RFC 9309), and the records that many sites add to it."""

from comity.policies.formats.format import Format, WellKnown
from comity.policies.formats.robots.authoring import AUTHORING
from comity.policies.formats.robots.file import PATH
from comity.policies.formats.robots.reading import RobotsSite
from comity.policies.formats.robots.rules import RULES

FORMAT = Format(
    name="robots",
    rules=RULES,
    # `refuses` is empty, because no page is fetched while robots.txt cannot be fetched.
    files=(WellKnown(PATH, restricts_access=True, refuses=()),),
    read_site=RobotsSite,
    authoring=AUTHORING,
)
