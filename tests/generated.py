"""The generated parts of pages, and the generated files. `make docs` runs

    python -m tests.generated

Each part is between `<!-- name -->` and `<!-- end -->` in its page. PARTS has its text, made from
the code. A part without line breaks is within a line, and not at its beginning: Markdown does not
format a line that begins with a comment."""

from __future__ import annotations

import json
import re
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from comity.authoring.expectations.sentences import FORMS, NOUNS, VERBS
from comity.authoring.rules import as_markdown
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.readers import named_crawlers, readers_of
from comity.authoring.wishes.wish import ELEMENT, FIELD, FORMATS, ORIGIN, Artefact, Form, Wish
from comity.commands import COMMANDS
from comity.completion import full_parser, subparsers
from comity.gate import explanation_shape
from comity.gate.fetching.causes import CAUSES
from comity.gate.options.declared import SETTINGS
from comity.gate.options.profiles import PROFILES
from comity.policies import formats as policies
from comity.policies.answers.rule import RULES, Effect, without_page
from comity.policies.formats.format import Format
from comity.policies.tag import schema
from comity.policies.vocabulary.honoured_signals import (
    HONOURS,
    WHOLE,
    HonourStatement,
    search_day,
    statements,
    statements_by,
)
from comity.policies.vocabulary.known_crawlers import known_crawlers, training_crawlers
from comity.policies.vocabulary.table import ANY, Vocabulary

ROOT = Path(__file__).parent.parent
RULE_PAGES = ROOT / "docs" / "rules"
SCHEMA = ROOT / "comity" / "policies" / "permissions.schema.json"
POLICY_SCHEMA = ROOT / "docs" / "policy.schema.json"
HISTORY_SCHEMA = ROOT / "docs" / "policy-history.schema.json"
END = "<!-- end -->"


def generated(path: str) -> str:
    """Return the text of a page with new parts. `path`: a key of PARTS."""
    text = (ROOT / path).read_text("utf-8")
    for name, part in PARTS[path].items():
        before, mark, rest = text.partition(f"<!-- {name} -->")
        assert END in rest, f"{path}: write `<!-- {name} -->` and `{END}`"
        text = before + mark + part() + rest[rest.index(END) :]
    return text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table as a block of Markdown."""
    head = tuple(head)
    lines = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return _block([next(lines), "|" + "---|" * len(head), *lines])


def _block(lines: Iterable[str]) -> str:
    return "\n\n" + "\n".join(lines) + "\n\n"


def vocabularies() -> str:
    """Return the table of vocabularies in docs/vocabulary.md."""
    return table(
        ("name", "", "specification", "revision", "words (`<`: narrows)"),
        (
            (
                f"`{one.name}`",
                one.title,
                f"{one.specification} {one.section}".strip(),
                one.revision,
                "; ".join(
                    f"{word} < {', '.join(general)}" if general else word
                    for word, general in one.narrows.items()
                ),
            )
            for one in Vocabulary.shipped().words.values()
        ),
    )


def matrix() -> str:
    """Return the table of uses and words. Uses with equal cells share a row."""
    vocabulary = Vocabulary.shipped()
    names = tuple(vocabulary.words)
    alike: dict[tuple[str, ...], list[str]] = {}
    for use in (*vocabulary.uses, ANY):
        alike.setdefault(tuple(_cell(vocabulary, name, use) for name in names), []).append(use)
    return table(
        ("use", *(f"`{name}`" for name in names)),
        (
            (", ".join("any other" if use == ANY else use for use in uses), *cells)
            for cells, uses in alike.items()
        ),
    )


def _cell(vocabulary: Vocabulary, name: str, use: str) -> str:
    related = vocabulary.related(name, use)
    within = dict.fromkeys(levels[0][0] for levels in related.levels)
    touching = (
        word
        for word in vocabulary.words[name].narrows
        if word in related.touching and word not in within
    )
    return " ".join((*(f"**{word}**" for word in within), *touching))


def relations() -> str:
    """Return the table of the rows that relate words to uses."""
    return table(
        ("uses", "", "words", "why"),
        (
            (
                ", ".join(one.uses).replace(ANY, "any other"),
                one.kind,
                " ".join(f"`{term}`" for term in one.terms),
                one.rationale,
            )
            for one in Vocabulary.shipped().relations
        ),
    )


LANGUAGES = {ELEMENT: "html", ".json": "json", ".xml": "xml"}


def wishes() -> str:
    """Return the index of the wishes, and a section for each, with its texts in every format."""
    index = table(
        ("wish", "command", "formats without a choice"),
        (
            (
                f"[{wish.title}](#{_anchor(wish.title)})",
                f"`{_new(wish)}`",
                ", ".join(wish.defaults),
            )
            for wish in WISHES
        ),
    )
    sections = _block(line for wish in WISHES for line in _of_wish(wish))
    return f"{index.rstrip()}{sections}".removesuffix("\n")


def _anchor(title: str) -> str:
    return "".join(char for char in title.lower() if char.isalnum() or char in " -").replace(
        " ", "-"
    )


def _new(wish: Wish) -> str:
    """Return the command that writes the files of a wish."""
    needed = (parameter for parameter in wish.parameters if parameter is not ORIGIN)
    options = "".join(f" --{parameter.name} {parameter.default}" for parameter in needed)
    return f"comity new {wish.name}{options}"


def _of_wish(wish: Wish) -> Iterator[str]:
    yield from (f"## {wish.title}", "", wish.summary, "")
    phrases = (
        re.sub(r"{(\w+)}", lambda name: "X" if name[1] == "crawlers" else "N", phrase)
        for phrase in wish.phrases
    )
    yield from (f"In other words: {', '.join(f'“{phrase}”' for phrase in phrases)}.", "")
    for parameter in wish.parameters:
        yield from (f"`{parameter.default}` stands for the {parameter.summary}.", "")
    for name in FORMATS:
        forms = [form for form in wish.forms if form.format == name]
        if forms:
            yield from (f"### {wish.title}: {name}", "")
        for form in forms:
            yield from _of_form(wish, form)
    yield from (
        f"### {wish.title}: formats that cannot say it",
        "",
        "| format | why |",
        "|---|---|",
    )
    yield from (f"| {unsaid.format} | {unsaid.reason} |" for unsaid in wish.unsaid)
    yield ""


def _of_form(wish: Wish, form: Form) -> Iterator[str]:
    yield from (form.remark, "")
    for artefact in form.artefacts:
        yield from (
            f"{_location(artefact)}:",
            "",
            f"```{_language(artefact)}",
            artefact.text(wish.values()).rstrip("\n"),
            "```",
            "",
        )
    for reader in readers_of(form):
        source = f" ([source]({reader.source}))" if reader.source else ""
        yield f"- {reader.statement}{source}."
    for crawler in named_crawlers(form.artefacts[0]):
        yield (
            f"- {crawler.token}: {crawler.operator}, {crawler.purpose}"
            f" ([source]({crawler.source}))."
        )
    yield ""


def _location(artefact: Artefact) -> str:
    return {FIELD: "As a response field", ELEMENT: "In the head of the page"}.get(
        artefact.location, f"`{artefact.location}`"
    )


def _language(artefact: Artefact) -> str:
    return next(
        (language for end, language in LANGUAGES.items() if artefact.location.endswith(end)), ""
    )


def honoured() -> str:
    """Return the sections of docs/honoured-signals.md: the statements about each format."""
    overview = table(
        ("format", "readers that honour a part of it", "last search"),
        (
            (
                f"[{one.title}](#{_anchor(one.title)})",
                ", ".join(sorted({said.who for said in _said(one) if said.answer == HONOURS}))
                or NOTHING,
                str(search_day(one.name) or "none"),
            )
            for one in policies.FORMATS
        ),
    )
    sections = _block(line for one in policies.FORMATS for line in _of_format(one))
    return f"{overview.rstrip()}{sections}".removesuffix("\n")


NOTHING = "nothing was found"


def _said(format_: Format) -> list[HonourStatement]:
    return [one for one in statements() if one.format == format_.name]


def _of_format(format_: Format) -> Iterator[str]:
    said = _said(format_)
    yield from (f"## {format_.title}", "")
    if said:
        yield from (
            table(("reader", "answer", "lines and words", "addition", "source"), map(_row, said))
            .strip()
            .split("\n")
        )
        yield ""
    silent = [
        name
        for name in dict.fromkeys(one.name for one in format_.authoring.directives)
        if not any(one.is_on(name) for one in said)
    ]
    names = ", ".join(f"`{name}`" for name in silent) or "the format"
    if silent or not said:
        yield from (f"Nothing was found about {names}.", "")


def _row(said: HonourStatement) -> tuple[str, ...]:
    crawlers = ", ".join(f"`{token}`" for token in said.crawlers)
    whole = said.directives == (WHOLE,)
    words = "all" if whole else ", ".join(f"`{one}`" for one in said.directives)
    quoted = f", quoted by [another page]({said.quoted_by})" if said.quoted_by else ""
    return (
        f"{said.who}: {crawlers}" if crawlers else said.who,
        said.answer,
        words,
        said.detail,
        f"[{said.date}]({said.source}){quoted}",
    )


def silent_crawlers() -> str:
    """Return the known crawlers about which nothing was found, for docs/honoured-signals.md."""
    return _listed(
        f"`{one.token}`"
        for one in known_crawlers()
        if not one.retired and not statements_by(one.token)
    )


def training() -> str:
    """Return the table of the crawlers for training, for docs/authoring.md."""
    return table(
        ("crawler", "operator", "purpose", "who says so"),
        (
            (
                f"`{one.token}`",
                one.operator,
                one.purpose,
                f"[{'the operator' if one.is_documented else 'others'}]({one.source})",
            )
            for one in training_crawlers()
        ),
    )


def causes() -> str:
    """Return the table of the causes of failed fetches."""
    return table(
        ("`comity/access/unreachable/...`", "cause", "what to do"),
        (
            (f"`{cause.name}`", cause.words or "no answer that can be read", cause.remedy)
            for cause in CAUSES
        ),
    )


def local_causes() -> str:
    """Return the causes that the operator can remove."""
    return ", ".join(f"`{cause.name}`" for cause in CAUSES if cause.is_local)


OTHER_PAGES = {"aipref": "usage-preferences"}


def page_of(format_: Format) -> str:
    """Return the name of the page in docs/ about a format."""
    return f"{OTHER_PAGES.get(format_.name, format_.name)}.md"


def folder_of(format_: Format) -> str:
    """Return the name of the folder of a format."""
    return format_.name.replace("-", "_")


def formats() -> str:
    """Return the table of formats in README.md."""
    return table(
        ("format", "specification", "comity reads", "code"),
        (
            (
                f"[{one.title}](docs/{page_of(one)})",
                one.specification,
                one.summary,
                f"`policies/formats/{folder_of(one)}/`",
            )
            for one in policies.FORMATS
        ),
    )


def format_pages() -> str:
    """Return links to the pages of all formats, for a page in docs/."""
    return _listed(f"[{one.title}]({page_of(one)})" for one in policies.FORMATS)


def files(prefix: str) -> str:
    """Return the paths of all policy files. `prefix`: text in place of the first slash."""
    return _listed(f"`{prefix}{path.removeprefix('/')}`" for path in policies.WELL_KNOWN)


def _listed(words: Iterable[str]) -> str:
    *words, last = words
    return f"{', '.join(words)} and {last}"


def unreachable_files() -> str:
    """Return the table of policy files, with the effect while one cannot be fetched."""
    return table(
        ("file", "until it can be fetched"),
        ((f"`{file.path}`", file.unreachable) for file in policies.FILES),
    )


def settings() -> str:
    """Return the table of settings."""
    return table(
        ("setting", "unit", "default", "meaning"),
        (
            (f"`{one.name}`", one.kind.unit, f"`{_python(one.default)}`", one.meaning)
            for one in SETTINGS
        ),
    )


def profiles() -> str:
    """Return the table of profiles in docs/profiles.md, with a row for each setting."""
    return table(
        ("profile", "setting", "why"),
        (
            (f"`{name}`", f"`{setting} = {json.dumps(value)}`", why)
            for name, profile in PROFILES.items()
            for setting, (value, why) in profile.settings.items()
        ),
    )


def profile_wishes() -> str:
    """Return the table of the wishes that profiles are for."""
    return table(("profile", "for"), ((f"`{name}`", one.wish) for name, one in PROFILES.items()))


# The tables of docs/rules.md: findings or decisions, and then the beginnings of ids, or whole ids.
RULE_TABLES = (
    "decisions: robots",
    "decisions: acap",
    "decisions: acap.expired acap.no-arrangement acap.resource",
    "decisions: automation",
    "decisions: usage content-usage content-signal training-rules trust-txt robots-meta tdmrep rsl ait"
    " spawning plus cawg comity.modification comity.arrangement",
    "decisions: acap.request",
    "decisions: registry",
    "findings: robots clean-param",
    "findings: acap",
    "findings: automation",
    "findings: usage content-usage content-signal training-rules trust-txt robots-meta tdmrep rsl",
    "findings: ait spawning",
    "findings: comity",
    "decisions: comity",
)
_SEPARATE = frozenset(name for table in RULE_TABLES for name in table.split() if "." in name)


def rules_in(name: str) -> Iterator[str]:
    """Yield the rules of a table. `name`: one of RULE_TABLES.

    A rule that a table names by its whole id is in no other table."""
    kind, *beginnings = name.split()
    for beginning in beginnings:
        for rule in RULES:
            is_meant = rule == beginning or (prefix_of(rule) == beginning and rule not in _SEPARATE)
            if is_meant and is_finding(rule) == (kind == "findings:"):
                yield rule


def is_finding(rule: str) -> bool:
    return RULES[rule].effect is Effect.FINDING


def prefix_of(rule: str) -> str:
    return rule.partition(".")[0]


def rules(name: str) -> str:
    """Return a table of rules. The id of a finding leads to its section in docs/rules/."""
    return table(
        ("rule", "specification", "meaning"),
        ((_rule_cell(rule), RULES[rule].spec, RULES[rule].summary) for rule in rules_in(name)),
    )


def _rule_cell(rule: str) -> str:
    return f"[`{rule}`](rules/{prefix_of(rule)}.md#{rule})" if is_finding(rule) else f"`{rule}`"


def rule_pages() -> dict[str, str]:
    """Return the pages of docs/rules/ by their names. Each has the findings with one prefix."""
    sections: dict[str, list[str]] = {}
    for rule in filter(is_finding, RULES):
        spec = RULES[rule].spec
        text = as_markdown(rule).replace(f"({without_page(spec)})", f"({spec})", 1)
        text = re.sub(r"(?<=[( ])docs/([a-z-]+\.md)", r"[docs/\1](../\1)", text)
        sections.setdefault(prefix_of(rule), []).append(
            f'<a id="{rule}"></a>\n\n## {rule}\n\n{text}\n'
        )
    return {
        f"{prefix}.md": f"# Findings: {prefix}\n\n[All rules](../rules.md). "
        f"`make docs` writes this page.\n\n" + "\n".join(parts)
        for prefix, parts in sections.items()
    }


# The commands of which Scrapy writes the help. docs/commands.md has a text of its own.
OF_SCRAPY = ("crawl", "runspider")


def commands() -> str:
    """Return the sections of docs/commands.md: each command with its arguments."""
    parsers = subparsers(full_parser())
    lines = []
    for group, names in groupby(COMMANDS, key=lambda name: COMMANDS[name].group):
        lines += [f"## {group}", ""]
        for name in names:
            lines += [*_command(name, parsers[name], "###")]
            for action, parser in subparsers(parsers[name]).items():
                lines += [*_command(f"{name} {action}", parser, "####")]
    return _block(lines).removesuffix("\n")


def _command(name: str, parser: ArgumentParser, heading: str) -> Iterator[str]:
    yield from (f"{heading} {name}", "", f"{(parser.description or '').rstrip('.')}.", "")
    if parser.usage:
        yield from (f"`{parser.usage}`", "")
    if name in OF_SCRAPY:
        return
    rows = [(_argument_cell(action), _help_of(action, parser)) for action in arguments_of(parser)]
    if rows:
        yield from table(("argument", "meaning"), rows).strip().split("\n")
        yield ""
    if parser.epilog:
        yield from (parser.epilog.replace("<", r"\<"), "")


def arguments_of(parser: ArgumentParser) -> list[Action]:
    """Return the arguments of a command, without --help and the options of all Scrapy commands."""
    return [
        action
        for group in parser._action_groups
        if group.title != "Global Options"
        for action in group._group_actions
        if action.help and action.help != SUPPRESS and not {"-h", "-s"} & {*action.option_strings}
    ]


def _argument_cell(action: Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if not action.option_strings:
        words = [metavar or action.dest]
    elif action.nargs == 0:
        words = list(action.option_strings)
    else:
        value = metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
        words = [f"{option} {value}" for option in action.option_strings]
    return ", ".join(f"`{word}`" for word in words).replace("|", r"\|")


def _help_of(action: Action, parser: ArgumentParser) -> str:
    return parser._get_formatter()._expand_help(action).replace("|", r"\|")


def _python(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def sentence_forms() -> str:
    """Return the table of sentences in docs/expectations.md."""
    return table(
        ("sentence", "example", "it holds if"),
        (
            (
                f"`{form.pattern}`".replace("|", "\\|"),
                f"`{form.example}`",
                form.explanation,
            )
            for form in FORMS
        ),
    )


def words_of_uses() -> str:
    """Return the table of words for uses in docs/expectations.md."""
    return table(
        ("word", "use"),
        (
            *((f"`{noun}`", f"`{use}`") for noun, use in NOUNS.items()),
            *((f"`may {verb}`, `must not {verb}`", f"`{use}`") for verb, use in VERBS.items()),
        ),
    )


def tag_members() -> str:
    """Return the tables of docs/schemas.md: the members of the tag, and of its parts."""
    whole = schema()
    parts = {"The tag": whole, **{f"Tag: {name}": part for name, part in whole["$defs"].items()}}
    sections = (
        f"{'###' if ':' in title else '##'} {title}{table(('member', 'type', 'meaning'), _members(part))}".rstrip()
        for title, part in parts.items()
        if "properties" in part
    )
    return "\n\n" + "\n\n".join(sections) + "\n\n"


def _members(part: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the members of an object. Members of a nested object without a table follow it."""
    for name, member in part["properties"].items():
        missing = "" if name in part.get("required", ()) else "; may be missing"
        named = schema()["$defs"][member["$ref"].rpartition("/")[2]] if "$ref" in member else member
        meaning = member.get("description", named.get("description", "")).replace("|", r"\|")
        yield f"`{name}`", f"{_type(member)}{missing}", meaning
        nested = named.get("items", named)
        if "properties" in nested and not ("$ref" in member and nested is named):
            for inner, inner_type, inner_meaning in _members(nested):
                yield f"`{name}.{inner.strip('`')}`", inner_type, inner_meaning


def _type(member: Mapping[str, Any]) -> str:
    """Return the type of a member in words."""
    if "$ref" in member:
        name = member["$ref"].rpartition("/")[2]
        part = schema()["$defs"][name]
        return f"[{name}](#tag-{name})" if "properties" in part else _type(part)
    if "const" in member or "enum" in member:
        values = member.get("enum", [member.get("const")])
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    kinds = member.get("type", "any")
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    inner = member.get("items", member.get("additionalProperties"))
    return f"{kind} of {_type(inner)}" if isinstance(inner, Mapping) else kind


PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"formats": formats},
    "docs/authoring.md": {"training": training},
    "docs/commands.md": {"commands": commands},
    "docs/expectations.md": {"forms": sentence_forms, "uses": words_of_uses},
    "docs/fetching.md": {
        "files": unreachable_files,
        "causes": causes,
        "local causes": local_causes,
    },
    "docs/formats.md": {"formats": format_pages},
    "docs/guard.md": {"files": partial(files, "")},
    "docs/honoured-signals.md": {"formats": honoured, "silent": silent_crawlers},
    "docs/policy-captures.md": {"files": partial(files, "/")},
    "docs/policy-command.md": {"files": partial(files, "DIR/")},
    "docs/profiles.md": {"wishes": profile_wishes, "profiles": profiles},
    "docs/rules.md": {name: partial(rules, name) for name in RULE_TABLES},
    "docs/schemas.md": {"tag": tag_members},
    "docs/settings.md": {"settings": settings},
    "docs/vocabulary.md": {
        "vocabularies": vocabularies,
        "matrix": matrix,
        "rows": relations,
    },
    "docs/wishes.md": {"wishes": wishes},
}


def schemas() -> dict[Path, str]:
    """Return the files with JSON Schemas, and their texts."""
    made = {SCHEMA: schema(), POLICY_SCHEMA: explanation_shape.schema()}
    made[HISTORY_SCHEMA] = explanation_shape.history_schema()
    return {path: json.dumps(content, indent=2) + "\n" for path, content in made.items()}


if __name__ == "__main__":
    for _path in PARTS:
        (ROOT / _path).write_text(generated(_path), "utf-8")
    for _file, _schema in schemas().items():
        _file.write_text(_schema, "utf-8")
    for _old in RULE_PAGES.iterdir():
        _old.unlink()
    for _name, _page in rule_pages().items():
        (RULE_PAGES / _name).write_text(_page, "utf-8")
