"""Imitations of the public sites that the projects in projects.toml crawl.

The imitations have the addresses, classes and attributes that the spiders look for. The texts are
our own. Each robots.txt disallows pages or files that other pages link to."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from tests.conftest import Answer, Route


@dataclass(frozen=True)
class Site:
    """One host. `disallowed`: the beginnings of the paths that its robots.txt disallows."""

    routes: dict[str, Route]
    disallowed: tuple[str, ...]

    def all_routes(self) -> dict[str, Route]:
        lines = ["User-agent: *", *(f"Disallow: {path}" for path in self.disallowed)]
        return {"/robots.txt": "\n".join(lines) + "\n", **self.routes}


def _page(body: str, title: str = "a page") -> str:
    return f"<!DOCTYPE html><title>{title}</title><body>{body}</body>"


def _picture() -> Answer:
    """A PNG of one white pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\xff")) + chunk(b"IEND", b"")
    return Answer(b"\x89PNG\r\n\x1a\n" + parts, content_type="image/png")


def _quote(number: int) -> str:
    return (
        f'<div class="quote"><span class="text">“Quote {number}.”</span>'
        f'<span>by <small class="author">Author {number}</small></span>'
        f'<div class="tags"><a class="tag" href="/tag/{number}/">tag {number}</a>'
        '<a class="tag" href="/tag/all/">all</a></div></div>'
    )


def _quotes() -> Site:
    pages = 3
    routes: dict[str, Route] = {}
    for page in range(1, pages + 1):
        quotes = "".join(_quote(number) for number in range(3 * page - 2, 3 * page + 1))
        following = f'<ul><li class="next"><a href="/page/{page + 1}/">Next</a></li></ul>'
        routes[f"/page/{page}/"] = _page(quotes + (following if page < pages else ""))
    routes["/"] = routes["/page/1/"]
    return Site(routes, ("/page/3/",))


def _books() -> Site:
    category = "/catalogue/category/books/mystery_3"
    routes: dict[str, Route] = {}

    def listing(numbers: range, following: str = "") -> str:
        books = "".join(
            f'<article class="product_pod"><div class="image_container">'
            f'<a href="/catalogue/book_{number}/index.html">cover</a></div>'
            f'<h3><a href="/catalogue/book_{number}/index.html">Book {number}</a></h3></article>'
            for number in numbers
        )
        pager = f'<li class="next"><a href="{following}">next</a></li>' if following else ""
        menu = f'<a href="/index.html">Home</a> <a href="{category}/index.html">Mystery</a>'
        return _page(
            f'{menu}{books}<ul class="pager"><li class="current">Page 1 of 2</li>{pager}</ul>'
        )

    for number in range(1, 7):
        routes[f"/media/{number}.png"] = _picture()
        routes[f"/catalogue/book_{number}/index.html"] = _page(
            f'<ul class="breadcrumb"><li><a href="/index.html">Home</a></li></ul>'
            f'<div class="item active"><img src="/media/{number}.png"></div>'
            f'<div class="product_main"><h1>Book {number}</h1><p class="price_color">£{number}.00</p>'
            f'<p class="availability">In stock ({number} available)</p></div>',
            f"Book {number}",
        )
    routes["/"] = routes["/index.html"] = listing(range(1, 4), "/catalogue/page-2.html")
    routes["/catalogue/page-2.html"] = listing(range(4, 7))
    routes[f"{category}/index.html"] = listing(range(1, 3), f"{category}/page-2.html")
    routes[f"{category}/page-2.html"] = listing(range(3, 6))
    return Site(routes, ("/catalogue/book_4/", "/media/2.png"))


def _reports() -> Site:
    document = Answer(b"%PDF-1.4\n", content_type="application/pdf")
    places = "".join(
        f"<url><loc>https://esd.ny.gov{path}</loc></url>" for path in ("/", "/reports")
    )
    links = ("/sound.pdf", "/moved.pdf", "/gone.pdf", "/private/gone.pdf")
    return Site(
        {
            "/sitemap.xml": Answer(
                '<?xml version="1.0" encoding="UTF-8"?>'
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>',
                content_type="application/xml",
            ),
            "/": _page("the start"),
            "/reports": _page("".join(f'<a href="{path}">{path}</a> ' for path in links)),
            "/sound.pdf": document,
            "/moved.pdf": Answer(status=302, headers={"Location": "/"}),
        },
        ("/private/",),
    )


def _directory() -> Site:
    def entries(name: str) -> str:
        return "".join(
            f'<div class="title-and-desc"><a href="http://{name}-{number}.test/">'
            f'<div class="site-title">{name} {number}</div></a>'
            f'<div class="site-descr"> about {name} {number} </div></div>'
            for number in (1, 2)
        )

    return Site(
        {
            "/": _page(
                '<div class="top-cat"><a href="/Arts/">Arts</a></div>'
                '<div class="top-cat"><a href="/Adult/">Adult</a></div>'
            ),
            "/Arts/": _page(
                entries("arts") + '<div class="cat-item"><a href="/Arts/Music/">Music</a></div>'
            ),
            "/Arts/Music/": _page(entries("music")),
            "/Adult/": _page(entries("adult")),
        },
        ("/Adult/",),
    )


def _library() -> Site:
    names = {1: "Grammar", 2: "History", 3: "Letters"}
    routes: dict[str, Route] = {
        f"/category/{number}": _page(
            f"<h1>Part {name}</h1>"
            + "".join(
                f'<div class="book_item"><a class="book_title" href="/book/{number}{book}">'
                f'{name} {book}</a><a class="text-gray" href="/author/{book}">Author {book}</a>'
                f'<p class="des">about {name}</p></div>'
                for book in (1, 2)
            )
        )
        for number, name in names.items()
    }
    routes["/"] = _page(
        "".join(
            f'<a class="cat_title" href="https://shamela.ws/category/{number}">{number} {name}</a>'
            for number, name in names.items()
        )
    )
    return Site(routes, ("/category/3",))


def _films() -> Site:
    def best(*numbers: int) -> str:
        return _page(
            "".join(
                f'<h2 class="meta-title"><a href="/film/fichefilm-{number}.html">{number}</a></h2>'
                for number in numbers
            )
        )

    routes: dict[str, Route] = {
        f"/film/fichefilm-{number}.html": _page(
            f'<div class="titlebar-title"> Film {number} </div>'
            f'<div class="meta-body-info"><span>{number} mai 200{number}</span></div>'
            f'<div class="meta-body-direction"><span>De</span> <span>Director {number}</span></div>'
            f'<div class="rating-item"><span>Presse</span> <span>{number},5</span></div>'
        )
        for number in range(1, 5)
    }
    routes |= {"/film/meilleurs/": best(1, 2), "/film/meilleurs/?page=2": best(3, 4)}
    return Site(routes, ("/film/fichefilm-4.html",))


SITES = {
    "books.toscrape.com": _books(),
    "esd.ny.gov": _reports(),
    "quotes.toscrape.com": _quotes(),
    "shamela.ws": _library(),
    "www.allocine.fr": _films(),
    "www.dmoz-odp.org": _directory(),
}
