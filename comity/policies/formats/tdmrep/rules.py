"""The rules of TDMRep."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

RULES = {
    "tdmrep.reserved": Rule(
        REFUSES, "W3C TDMRep section-4", "the rights of text and data mining are reserved"
    ),
    "tdmrep.not-reserved": Rule(
        ALLOWS, "W3C TDMRep section-4", "the rights of text and data mining are not reserved"
    ),
    "tdmrep.unreachable": Rule(
        REFUSES,
        "comity, docs/tdmrep.md",
        "tdmrep.json cannot be fetched: it may reserve the rights",
        is_unreachable=True,
    ),
    "tdmrep.syntax": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "tdmrep.json does not follow the specification",
        severity=ERROR,
        why="Readers expect the file as the specification defines it. If they cannot read a "
        "rule, they may see no reservation and mine your content.",
        fix="Write an array of objects. Give each a `location`, and a `tdm-reservation` of 1 or 0.",
        example=Example(
            bad='{"location": "/", "tdm-reservation": 1}\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.strict": Rule(
        FINDING,
        "RFC 8259 section-2",
        "strict readers refuse the JSON: it has comments, a byte order mark, or too many or too "
        "few commas",
        severity=ERROR,
        why="A strict reader refuses the whole file because of a comment, of a byte order mark "
        "(RFC 8259, section 8.1), or of a comma too many or too few. It then sees no reservation.",
        fix="Delete comments, extra commas and the byte order mark, and write one comma between "
        "two values.",
        example=Example(
            bad='[\n  // the whole site\n  {"location": "/", "tdm-reservation": 1},\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.value": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a value is invalid: it counts as not set",
        severity=ERROR,
        why="A value that the specification does not define counts as not set. If "
        "`tdm-reservation` is not set, your rights are not reserved.",
        fix="Write the number 1 or 0 for `tdm-reservation`, and a URL for `tdm-policy`.",
        example=Example(
            bad='[\n  {"location": "/", "tdm-reservation": true}\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.limit": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "the file exceeds a limit",
        severity=ERROR,
        why="comity reads 512 KiB and 5,000 rules of a file, and assumes that all other "
        "resources are reserved. Other readers may stop earlier and see no reservation.",
        fix="Write fewer rules, with `*` or the path of a folder.",
        example=Example(
            bad="[\n"
            '  {"location": "/news/1.html", "tdm-reservation": 1},\n'
            '  {"location": "/", "tdm-reservation": 1}\n'
            "]\n",
            good='[\n  {"location": "/news/", "tdm-reservation": 1}\n]\n',
            repeated='  {"location": "/news/1.html", "tdm-reservation": 1},\n',
            times=5000,
        ),
    ),
    # Found for authors alone
    "tdmrep.attribute": Rule(
        FINDING,
        "W3C TDMRep sec-tdm-html-meta",
        "an element has `property` or `http-equiv` instead of `name`",
        why="The specification has the attribute `name`. Most readers look for no other "
        "attribute, so they see no reservation.",
        fix="Write `name` for `property` or `http-equiv`.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta property="tdm-reservation" content="1">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="tdm-reservation" content="1">\n',
            name="page.html",
        ),
    ),
    "tdmrep.duplicate": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a rule repeats an earlier one for the same resources",
        severity=INFO,
        why="The first rule that matches a resource decides. An earlier rule sets the same "
        "values for all resources of this rule, so this rule changes nothing.",
        fix="Delete the rule.",
        example=Example(
            bad="[\n"
            '  {"location": "/", "tdm-reservation": 1},\n'
            '  {"location": "/news/", "tdm-reservation": 1}\n'
            "]\n",
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.member": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "an unknown member or element probably stands for a known one",
        why="Readers ignore a member that they do not know. A rule with a misspelled "
        "`tdm-reservation` reserves nothing.",
        fix="Write `location`, `tdm-reservation` or `tdm-policy`.",
        example=Example(
            bad='[\n  {"location": "/", "tdm_reservation": 1}\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.overruled": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a rule never decides: an earlier one matches all of its resources",
        why="The first rule that matches a resource decides. An earlier rule matches all "
        "resources of this rule, so this rule never decides.",
        fix="Put the rule for fewer resources first.",
        example=Example(
            bad="[\n"
            '  {"location": "/", "tdm-reservation": 1},\n'
            '  {"location": "/free/", "tdm-reservation": 0}\n'
            "]\n",
            good="[\n"
            '  {"location": "/free/", "tdm-reservation": 0},\n'
            '  {"location": "/", "tdm-reservation": 1}\n'
            "]\n",
        ),
    ),
    "tdmrep.pattern": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a location probably matches nothing",
        why="Only `*`, and `$` at the end, have a special meaning in a location. All other "
        "characters have to be in the URL, so the rule probably applies to no page.",
        fix="Write the path as it is in your URLs, with `*` for any characters.",
        example=Example(
            bad='[\n  {"location": "/(news|blog)/", "tdm-reservation": 1}\n]\n',
            good="[\n"
            '  {"location": "/news/", "tdm-reservation": 1},\n'
            '  {"location": "/blog/", "tdm-reservation": 1}\n'
            "]\n",
        ),
    ),
    "tdmrep.policy": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "the address of a policy is not absolute",
        severity=INFO,
        why="Some readers do not make a relative address absolute. They cannot find your policy, "
        "so they cannot ask you for a licence.",
        fix="Write the whole URL, with `https://` and the host.",
        example=Example(
            bad='[\n  {"location": "/", "tdm-reservation": 1, "tdm-policy": "/terms"}\n]\n',
            good="[\n"
            '  {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://example.com/terms"}\n'
            "]\n",
        ),
    ),
    "tdmrep.policy-alone": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a page has a policy and no reservation",
        why="A policy says how to get a permission, but does not reserve the right. A reader may "
        "conclude that it needs no permission.",
        fix="Add `tdm-reservation` with the value 1.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="tdm-policy" content="https://example.com/policy.json">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="tdm-reservation" content="1">\n'
            '<meta name="tdm-policy" content="https://example.com/policy.json">\n',
            name="page.html",
        ),
    ),
    "tdmrep.repeated": Rule(
        FINDING,
        "RFC 8259 section-4",
        "a rule has two members with the same name",
        why="Some readers take the first value, others the last one, and others refuse the whole "
        "file. comity takes a reservation if one of the values is 1.",
        fix="Delete one of the two members.",
        example=Example(
            bad='[\n  {"location": "/", "tdm-reservation": 0, "tdm-reservation": 1}\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.text": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "the reservation is a text instead of a number",
        why="The specification has the numbers 1 and 0. A reader that looks for a number does "
        'not take the text `"1"` for a reservation.',
        fix="Write the number without quotes.",
        example=Example(
            bad='[\n  {"location": "/", "tdm-reservation": "1"}\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.unread": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "no known reader reads a member",
        severity=INFO,
        why="No known reader looks for this member, so it neither reserves nor permits anything.",
        fix="Delete the member.",
        example=Example(
            bad='[\n  {"location": "/", "tdm-reservation": 1, "noai": true}\n]\n',
            good='[\n  {"location": "/", "tdm-reservation": 1}\n]\n',
        ),
    ),
    "tdmrep.unused-policy": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a policy has no effect: the right is not reserved",
        severity=INFO,
        why="A policy offers permissions for a reserved right. With the value 0 a reader needs "
        "no permission, so it does not look for the policy.",
        fix="Delete the policy, or write 1 if the right is reserved.",
        example=Example(
            bad="[\n"
            '  {"location": "/", "tdm-reservation": 0, "tdm-policy": "https://example.com/policy.json"}\n'
            "]\n",
            good="[\n"
            '  {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://example.com/policy.json"}\n'
            "]\n",
        ),
    ),
}
