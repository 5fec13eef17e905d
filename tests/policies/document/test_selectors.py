"""Selectors that sites write: the selected elements, and the bounded time."""

from __future__ import annotations

import contextlib

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st
from parsel import Selector

from comity.policies.document.markup import Html, Xhtml
from comity.policies.document.selector_index import (
    MAX_ELEMENTS,
    Budget,
    CostError,
    Outline,
    element_attributes,
)
from comity.policies.document.selectors import (
    MAX_CHARS,
    MAX_FUNCTIONS,
    SelectorError,
    compiled,
    select,
)
from tests.selection import one_in

PLENTY = 10_000_000
ONE = "<!doctype html>"


def select_numbers(html: str, css: str) -> list[str]:
    """Return the `n` attributes of the selected elements."""
    page = Html(html)
    return [
        one.get("n", one.tag)
        for one in select(css, Outline(page.root, Budget(PLENTY), any_case=page.is_quirky))
    ]


PAGE = """<!doctype html><html lang=en n=0><head n=1><title n=2>T</title></head><body n=3>
<div id=top class="a  b" n=4><p n=5>x<em n=6>y</em></p><p class=a n=7></p><ul n=8>\
<li n=9>1<li n=10 class=b>2<li n=11>3</ul></div>
<section class=c data-x="one two-three" n=12><div n=13><p lang=de-AT n=14>z</p><!-- c --></div>\
<a href=/x n=15>l</a><a n=16>k</a>
</section></body></html>"""

SELECTED = [
    ("p", "5 7 14"),
    ("P", "5 7 14"),
    (".a", "4 7"),
    (".A", ""),
    ("#top", "4"),
    ("div.a.b", "4"),
    ("div p", "5 7 14"),
    ("div > p", "5 7 14"),
    ("body > p", ""),
    ("div div p", ""),
    ("section p, .b", "4 10 14"),
    ("p + p", "7"),
    ("p + ul", "8"),
    ("p ~ ul", "8"),
    ("p ~ p ~ ul li", "9 10 11"),
    ("li ~ li", "10 11"),
    ("[href]", "15"),
    ("[HREF]", "15"),
    ("[data-x~=one]", "12"),
    ("[data-x~=two]", ""),
    ("[data-x^=one]", "12"),
    ("[data-x$='three']", "12"),
    ("[data-x*=' two']", "12"),
    ("[data-x*='']", ""),
    ("[lang|=de]", "14"),
    ("[lang|=d]", ""),
    ("[data-x='ONE TWO-THREE' i]", "12"),
    ("li:first-child", "9"),
    ("li:last-child", "11"),
    ("li:nth-child(odd)", "9 11"),
    ("li:nth-child(-n+2)", "9 10"),
    ("li:nth-last-child(2)", "10"),
    ("p:nth-of-type(2)", "7"),
    ("p:only-child", "14"),
    ("ul:only-of-type", "8"),
    ("div > :nth-last-of-type(1)", "7 8 14"),
    ("p:empty", "7"),
    (":root", "0"),
    ("a:link", "15"),
    ("li:not(.b)", "9 11"),
    ("p:not(section p)", "5 7"),
    (":is(p, li).a", "7"),
    (":where(.b, .c) > div", "13"),
    ("p::first-line", "5 7 14"),
    ("p::text", "5 7 14"),
    ("*|p", "5 7 14"),
    (r".\61", "4 7"),
    ("section:has(> div p)", "12"),
    ("div:has(em)", "4"),
    ("p:has(+ p)", "5"),
    ("p:has(~ ul .b, > em)", "5 7"),
    ("p:has(~ ul)", "5 7"),
    ("ul:has(> li + li.b)", "8"),
    ("ul:has(> li + li + li)", "8"),
    (":is(div, section) > :is(p.a, div)", "7 13"),
    (":-webkit-any(.b, .c)", "4 10 12"),
    ("p:not(.a, section *)", "5"),
    ("li:not(:not(.b))", "10"),
    (":nth-child(2 of p, ul)", "7"),
    ("li:nth-child(1 of .b)", "10"),
    ("li:nth-last-child(-n+2 of :not(.b))", "9 11"),
    ("p:lang(de)", "14"),
    ("p:lang('*-AT', fr)", "14"),
    ("p:lang(en)", "5 7"),
    ("p:lang(de-DE)", ""),
    ("[LANG=DE-at]", "14"),
    ("[class=C]", ""),
    ("[class=C i]", "12"),
    ("[lang=DE-at s]", ""),
    ("/* our texts */ p/**/.a", "7"),
    ("div/* > */ p:nth-child(/* the */ 2 /* nd */ of/**/p), li/* ) , */.b", "7 10"),
    ("p:lang(/* German */ de)[lang/**/=de-AT]", "14"),
]


@pytest.mark.requirement("AIT-5")
def test_links_of_svg() -> None:
    page = """<!doctype html><a n=1></a><svg><a xlink:href=/x n=2></a><a href=/x n=3></a>\
<a n=4></a></svg>"""
    assert [select_numbers(page, css) for css in ("a:link", ":any-link", "a:not(:link)")] == [
        ["2", "3"],
        ["2", "3"],
        ["1", "4"],
    ]


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(("css", "found"), one_in(3, SELECTED))
def test_what_a_selector_selects(css: str, found: str) -> None:
    assert select_numbers(PAGE, css) == found.split()


NOT_READ = [
    "",
    "p[",
    "p >",
    "..a",
    "p[a!=b]",
    "p,",
    "{",
    "p { color: red }",
    "//p",
    "a|",
    "p!",
    "p::first-line a",
    "::",
    "p:",
    "p:has(a",
    'p[x="',
    "p\\",
    "/* p */",
    "p /* a",
    "p/**/li",
    "li:nope",
    "li:nope(1).b",
    "p::foo()",
    "p:before()",
    "p:slotted",
    "p:nth-child(x)",
    "p:nth-child(+)",
    "p:nth-of-type(1 of p)",
    "p:is()",
    "p:not(:nope)",
    "p:has(#)",
    "p:lang(1)",
]


@pytest.mark.requirement("AIT-13", "SEC-5")
@pytest.mark.parametrize(
    "css",
    [
        *one_in(3, NOT_READ),
        "p" * (MAX_CHARS + 1),
        "p" + ":is(p" * (MAX_FUNCTIONS + 1) + ")" * (MAX_FUNCTIONS + 1),
        "(" * MAX_CHARS,
    ],
)
def test_what_is_not_read(css: str) -> None:
    with pytest.raises(SelectorError):
        compiled(css)


LEFT_OUT = [
    ("a:hover", "15 16", [":hover"]),
    ("a:visited:not(.a)", "15 16", [":visited"]),
    ("p::slotted(a)", "5 7 14", [":slotted()"]),
    ("p:-moz-any-thing", "5 7 14", [":-moz-any-thing"]),
    ("li:dir(ltr).b", "10", [":dir()"]),
    ("svg|p", "5 7 14", ["svg|"]),
    ("|p", "5 7 14", ["|"]),
    ("p[svg|href]", "5 7 14", ["[href]"]),
    (r"p[\@click]", "5 7 14", ["[@click]"]),
    ("p[x\u00b2]", "5 7 14", ["[x\u00b2]"]),
    (r"p[a\:b\:c]", "5 7 14", ["[a:b:c]"]),
    ("p[xmlns]", "5 7 14", ["[xmlns]"]),
    (r"p[xmlns\:x='a']", "5 7 14", ["[xmlns:x]"]),
    ("p[x\u00e9]", "", []),
    # Without a left-out part the numbers would be wrong.
    ("li:nth-child(2 of .b:hover)", "9 10 11", [":nth-child()"]),
    # Inside a negation less would be selected, so the negation is true for every element.
    ("li:not(:hover)", "9 10 11", [":hover"]),
    ("li:not(.b:hover)", "9 10 11", [":hover"]),
    ("li:not(.b, :hover)", "9 11", [":hover"]),
    ("li:not(svg|li)", "9 10 11", ["svg|"]),
    ("li:not(:is(.b:hover))", "9 10 11", [":hover"]),
    ("div:not(:has(:hover))", "4 13", [":hover"]),
    ("li:not(:not(.b:hover))", "10", [":hover"]),
    ("p:not(:lang(fr))", "5 7 14", []),
]


@pytest.mark.requirement("AIT-5", "AIT-13")
@pytest.mark.parametrize(("css", "found", "unread"), one_in(2, LEFT_OUT))
def test_what_is_left_out_selects_more(css: str, found: str, unread: list[str]) -> None:
    assert select_numbers(PAGE, css) == found.split()
    assert list(compiled(css).unread) == unread


@pytest.mark.requirement("AIT-5")
def test_a_language_that_no_element_states_may_be_any() -> None:
    assert select_numbers(f"{ONE}<p n=1>x<p n=2 lang=en>y", "p:lang(fr)") == ["1"]
    assert select_numbers(f"{ONE}<p n=1>x<p n=2 lang=fr>y", "p:not(:lang(fr))") == ["1"]


@pytest.mark.requirement("AIT-5")
def test_case_is_of_no_account_in_a_page_without_a_doctype() -> None:
    for doctype, found in ((ONE, []), ("", ["1"])):
        assert select_numbers(f"{doctype}<p class=Secret n=1>x", ".sEcret") == found
        assert select_numbers(f"{doctype}<p id=Secret n=1>x", "#secret") == found


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("css", "found"),
    [
        (".a", "1"),
        (".x", "1"),
        ("p:not(.x)", "2 3 4"),
        ("p:not([class~=x])", "2 3 4"),
        ("[class~='a\u00a0x']", "2"),
        (".a\u3000x", "3"),
    ],
)
def test_classes_are_parted_by_white_space_of_ascii(css: str, found: str) -> None:
    """DOM, section 3.5: other white space is a part of a class."""
    page = (
        f"{ONE}<p class='a\n\f x' n=1><p class='a\u00a0x' n=2><p class='a\u3000x' n=3>"
        f"<p class='a\u0085x' n=4>"
    )
    assert select_numbers(page, css) == found.split()


@pytest.mark.requirement("AIT-5")
def test_case_is_that_of_ascii() -> None:
    """The Kelvin sign is not a K."""
    page = "<p class=\u212a type=\u212a n=1><p class=K type=K n=2>"
    for css in (".k", "[type=k]", "[class=k i]"):
        assert (select_numbers(page, css), select_numbers(page, f"p:not({css})")) == (["2"], ["1"])


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("name", "css"),
    [
        ("math-\u03b1", "math-\u03b1"),  # HTML Standard section-4.13.3
        ("math-\u03b1", "MATH-\u03b1"),
        ("emotion-\U0001f60d", "emotion-\U0001f60d"),
        ("a\u00e9", "a\u00e9"),
        ("a\u00c9", "a\u00c9"),
        ("a\u00aa", "a\u00aa"),
        ("foo@bar", r"foo\@bar"),
        ("c:d+e", r"c\:d\+e"),
        ("a:b:c", r"a\:b\:c"),
        ("o:p", r"o\:p"),
    ],
)
def test_elements_may_be_called_what_xml_has_no_names_for(name: str, css: str) -> None:
    page = f"{ONE}<{name} n=1>x</{name}><math-\u03b2 n=2>y</math-\u03b2><a-e9- n=3>z</a-e9-><p n=4>"
    assert select_numbers(page, css) == ["1"]
    assert select_numbers(page, f"body > :not({css})") == ["2", "3", "4"]


@pytest.mark.requirement("AIT-5")
def test_names_of_xhtml_are_those_without_prefixes() -> None:
    page = "<x:p n='1'/><math-\u03b1 n='2'/><p n='3'/><x:\u00c9 n='4'/>"
    outline = Outline(
        Xhtml(f"<html xmlns='http://www.w3.org/1999/xhtml' xmlns:x='u'>{page}</html>").root,
        Budget(PLENTY),
    )
    css = ("p", "math-\u03b1", ":not(p)", "\u00c9", "\u00e9")
    assert [[one.get("n") for one in select(name, outline)] for name in css] == [
        ["1", "3"],
        ["2"],
        [None, "2", "4"],
        ["4"],
        [],
    ]


TABLE = (
    f"{ONE}<table n=t><caption n=c>x</caption><tr n=1><td>1<tr n=2><td>2<tfoot n=f><tr n=3>"
    f"<td>3</tfoot><tr n=4><td>4</table>"
)


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("table > tbody > tr", "1 2 4"),
        ("tbody > tr:first-child", "1 4"),
        ("tbody:nth-of-type(1)", "tbody"),
        ("tbody", "tbody tbody"),
        ("table > tr", "1 2 4"),  # for readers other than browsers
        ("caption + tbody tr", "1 2"),
        ("tfoot + tbody tr", "4"),
        ("table > tbody td", "td td td"),
    ],
)
def test_rows_without_tbody_stand_in_one_as_in_browsers(css: str, found: str) -> None:
    assert select_numbers(TABLE, css) == found.split()


SHADOW = """<div n=1><template shadowrootmode=open n=2><slot n=3></slot><p n=4>s</p></template>\
<p n=5>x</p><b n=6></b></div>
<x-y n=7><template shadowrootmode=CLOSED n=8></template></x-y>"""


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("div > p:first-child", "5"),
        ("p:nth-child(2)", "4"),
        ("p:not(:first-child)", "4"),
        ("p:first-of-type", "4 5"),
        ("div > p:nth-last-child(2)", "5"),
        ("p:not(* + p)", "5"),
        ("div > * + *", "6"),
        ("div > p:not(template ~ p)", "5"),
        ("div:has(> :nth-child(1 of :not(x)) + b)", "1"),
        ("div > :nth-child(1 of :not(i)):not(template)", "5"),
        ("div:not(:has(template ~ p))", "1"),
        ("x-y:empty", "7"),
        ("template", "2 8"),
        ("div > template p", "4"),
    ],
)
def test_a_declarative_shadow_root_is_no_child_of_its_host(css: str, found: str) -> None:
    """HTML Standard section-13.2.6.4.4, "template": it is not a sibling of the host's children."""
    assert select_numbers(f"{ONE}{SHADOW}", css) == found.split()


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    "html",
    [
        "<div><template>a</template><p n=1>",
        "<div><template shadowrootmode=none>a</template><p n=1>",
        "<ul><template shadowrootmode=open>a</template><p n=1></ul>",
        "<svg><g><template shadowrootmode=open></template></g></svg><template></template><p n=1>",
        "<div><template shadowrootmode=open>a</template><template shadowrootmode=open>a"
        "</template><p n=1>",
    ],
)
def test_other_templates_are_children(html: str) -> None:
    parsed = turbohtml.parse(ONE + html)
    assert [
        element.matches("p:first-child") for element in parsed.iter_elements() if element.tag == "p"
    ] == [False]
    assert select_numbers(ONE + html, "p:first-child") == []


APART = f"""{ONE}<div n=1>x<noscript n=2><img n=3></noscript></div><div n=4><b n=5></b>\
<img n=6></div>
<div n=7><template n=8><p n=9><img n=10></p></template></div><noscript n=11><p n=12>\
<img n=13></p></noscript>"""


@pytest.mark.requirement("AIT-5", "AIT-13")
@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("div:has(img)", "1 4 7"),  # for readers that do not run scripts
        ("div:not(:has(img))", "1 7"),  # for browsers
        ("div:not(:has(* > img))", "1 4 7"),
        ("div:not(:has(p > img))", "1 4 7"),
        ("div:not(:has(:is(div, p) img))", "1 4 7"),
        ("div:not(:not(:has(img)))", "1 4 7"),
        ("p:not(:has(img))", ""),  # both are in the same fragment
        ("p:not(:has(> img))", ""),
        ("noscript:not(:has(p))", "2 11"),
        ("template:not(:has(> p))", "8"),
        ("img:not(div img)", "3 10 13"),
        ("img:not(noscript img)", "3 6 10 13"),
        ("img:not(p > img)", "3 6"),
        ("p:not(template > p, body > noscript > p)", "9 12"),
        ("div:not(:has(> :not(b, img, noscript, template)))", "1 4 7"),
        ("template:empty", "8"),
        ("noscript:empty", ""),
    ],
)
def test_what_stands_in_noscript_and_template_makes_no_negation_select_less(
    css: str, found: str
) -> None:
    assert select_numbers(APART, css) == found.split()


@pytest.mark.requirement("AIT-5", "AIT-13")
@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("tr:not(table > tr)", "1 2 3 4"),
        ("tr:not(tbody > tr)", "3"),
        ("table:has(> tr)", "t"),
        ("table:not(:has(> tr))", "t"),
        ("table:not(:has(> tbody))", ""),
    ],
)
def test_rows_that_stand_in_a_tbody_make_no_negation_select_less(css: str, found: str) -> None:
    assert select_numbers(TABLE, css) == found.split()


@st.composite
def trees(draw: st.DrawFn) -> str:
    """Elements that the parser leaves in their places."""
    parts = []
    depth = 0
    for _ in range(draw(st.integers(1, 25))):
        if depth and draw(st.booleans()):
            parts.append("</div>" if draw(st.booleans()) else "</div>x")
            depth -= 1
        else:
            attributes = draw(
                st.sampled_from(
                    ["", " class=a", " class='b a'", " id=i", " class=B x=1", " x='a b'"]
                )
            )
            parts.append(f"<div{attributes}>" if draw(st.booleans()) else f"<b{attributes}></b>")
            depth += parts[-1].startswith("<div")
    return ONE + "<body>" + "".join(parts) + "</div>" * depth


SIMPLE = [
    "div",
    "b",
    "*",
    ".a",
    ".b",
    "#i",
    "[x]",
    "[x~=a]",
    "div.a",
    ":first-child",
    "b:last-child",
    "div:nth-child(2n)",
]
SIMPLE += [
    "div:nth-last-of-type(-n+2)",
    ":only-child",
    ":empty",
    "div:not(.a)",
    ":is(b, .a)",
    ":not(b)",
]
selectors = st.lists(
    st.tuples(st.sampled_from([" ", " > ", " + ", " ~ "]), st.sampled_from(SIMPLE)),
    min_size=1,
    max_size=4,
).map(
    lambda steps: "".join(joint + simple for joint, simple in steps)[
        3 if steps[0][0] != " " else 1 :
    ]
)


@pytest.mark.requirement("AIT-5")
@settings(deadline=None)
@given(trees(), st.lists(selectors, min_size=1, max_size=2).map(", ".join))
def test_it_selects_what_xpath_selects(html: str, css: str) -> None:
    page = Selector(html, type="html")
    wanted = [found.root for found in page.css(css)]
    assert select(css, Outline(page.root, Budget(PLENTY))) == wanted


NESTED = [
    ":has(.a)",
    ":has(> b + .a)",
    ":has(~ div b)",
    ":not(.a, b)",
    ":is(div .a, b)",
    ":nth-child(2n of .a)",
    ":has(:not(b))",
]
NESTED += [":nth-last-child(1 of :is(.a, .b))", ":not(:has(b))", "b:not(div > b)", ":lang(en)"]
nested = st.lists(
    st.tuples(st.sampled_from([" ", " > ", " + ", " ~ "]), st.sampled_from(SIMPLE + NESTED)),
    min_size=1,
    max_size=3,
)


@pytest.mark.requirement("AIT-5")
@settings(deadline=None)
@given(
    trees(),
    nested.map(
        lambda steps: "".join(joint + simple for joint, simple in steps)[len(steps[0][0]) :]
    ),
)
def test_it_selects_what_another_program_selects(html: str, css: str) -> None:
    html = html.replace("<body>", "<html lang=en>")
    theirs, ours = turbohtml.parse(html), Html(html)
    elements = [*theirs.iter_elements()]
    wanted = [place for place, element in enumerate(elements) if element.matches(css)]
    places = {element: place for place, element in enumerate(ours.root.iter("*"))}
    assert [places[one] for one in select(css, Outline(ours.root, Budget(PLENTY)))] == wanted


@pytest.mark.requirement("AIT-5")
@settings(deadline=None)
@given(trees(), st.lists(selectors, min_size=2, max_size=8))
def test_selectors_that_share_an_outline_select_as_each_alone(html: str, many: list[str]) -> None:
    root = Selector(html, type="html").root
    shared = Outline(root, Budget(PLENTY), known=element_attributes(root))
    for css in many:
        assert select(css, shared) == select(css, Outline(root, Budget(PLENTY)))


PIECES = [
    "a",
    "p",
    "div",
    ".b",
    "#a",
    "*",
    ">",
    "+",
    "~",
    " ",
    ",",
    "(",
    ")",
    "[",
    "]",
    "=",
    "'",
    '"',
    "\\",
    ":",
    "::",
    ":not(",
]
PIECES += [
    "of",
    ":lang(",
    "en",
    "\n",
    "||",
    "%",
    "even",
    "s",
    ":nth-child(2 of",
    "~=",
    "<!--",
    "url(",
    "U+1",
    ";",
    "\ud800",
]
PIECES += [
    ":is(",
    ":nth-child(",
    "2n+1",
    "-n",
    ":hover",
    ":root",
    ":has(",
    "|",
    "^=",
    "1",
    "é",
    "\0",
    "{",
    "/*",
    "*/",
    "i",
    "!=",
]


@pytest.mark.requirement("SEC-5", "AIT-13")
@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
def test_nothing_but_a_selector_error_is_raised(css: str) -> None:
    with contextlib.suppress(SelectorError):
        assert isinstance(select_numbers(PAGE, css), list)


@pytest.mark.requirement("SEC-5")
@settings(deadline=None)
@given(trees(), st.lists(selectors, min_size=1, max_size=20).map(", ".join))
def test_steps_are_linear_in_the_page_and_in_the_selector(html: str, css: str) -> None:
    budget = Budget(PLENTY)
    outline = Outline(Selector(html, type="html").root, budget)
    with contextlib.suppress(SelectorError):  # it has too many functions
        select(css, outline)
    assert PLENTY - budget.remaining <= len(css) * (16 + 2 * len(outline.elements))


COSTLY = [
    "* ~ " * 400 + "*",
    "div ~ " * 300 + "div",
    ":not(* *)" * 20,
    "[x*=a]," * 250 + "a",
    ":is(*)" * 20,
    ":nth-child(n)" * 20,
]


@pytest.mark.requirement("SEC-5")
@pytest.mark.parametrize("css", COSTLY)
def test_what_costs_too_much_ends_there(css: str) -> None:
    html = ONE + "<div x=a></div>" * 3_000
    budget = Budget(50_000)
    outline = Outline(Selector(html, type="html").root, budget)
    with pytest.raises(CostError):
        select(css.strip(), outline)
    with pytest.raises(CostError):
        select("a", outline)  # a spent budget stays spent


@pytest.mark.requirement("SEC-5")
def test_long_attributes_cost() -> None:
    root = Selector(f"{ONE}<p x={'a' * 500_000}>", type="html").root
    outline = Outline(root, Budget(5_000))
    with pytest.raises(CostError):
        select(f"[x*='{'a' * 900}b']", outline)


@pytest.mark.requirement("SEC-5")
def test_many_attributes_cost() -> None:
    outline = Outline(
        Html(f"{ONE}<p {' '.join(f'a{number}' for number in range(900))}>").root, Budget(200)
    )
    with pytest.raises(CostError):
        select(",".join(f"[b{number}]" for number in range(20)), outline)


@pytest.mark.requirement("SEC-5")
def test_a_page_of_too_many_elements_is_not_read() -> None:
    root = Selector(ONE + "<br>" * (MAX_ELEMENTS + 1), type="html").root
    budget = Budget(PLENTY)
    with pytest.raises(CostError):
        Outline(root, budget)
    assert budget.remaining < 0
