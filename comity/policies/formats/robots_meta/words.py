"""The documented directives of robots meta elements, each with its meaning."""

SUMMARIES = {
    "all": "Nothing is refused",
    "none": "The same as `noindex, nofollow`",
    "index": "The page may be found in search: this is the default",
    "noindex": "The page must not be found in search",
    "follow": "Links may be followed: this is the default",
    "nofollow": "Links of the page must not be followed",
    "archive": "Copies may be shown: this is the default",
    "noarchive": "No copies of the page may be shown",
    "nocache": "The same as `noarchive` for some search engines",
    "snippet": "Text may be shown: this is the default",
    "nosnippet": "No text, image or video of the page may be shown in search, or be input of AI",
    "imageindex": "Images may be found in search: this is the default",
    "noimageindex": "Images of the page must not be found in search",
    "indexifembedded": "With `noindex`: content embedded in another page may be found in search",
    "notranslate": "The page must not be translated",
    "noai": "AI must not be trained on the page",
    "noimageai": "AI must not be trained on the images of the page",
    "noml": "The page must not be used for machine learning",
    "noodp": "Obsolete: no description of the Open Directory",
    "noydir": "Obsolete: no description of Yahoo's directory",
    "noyaca": "Obsolete: no description of Yandex's catalogue",
    "nositelinkssearchbox": "Obsolete: no search box below the result",
}
VALUED = (
    ("max-snippet", "How many characters may be shown: 0 for none, -1 for any number", "number"),
    ("max-image-preview", "How large images may be shown", "image-preview"),
    (
        "max-video-preview",
        "How many seconds of videos may be shown: 0 for none, -1 for any number",
        "number",
    ),
    (
        "unavailable_after",
        "From when on the page must not be found in search, such as 2030-01-31",
        "date",
    ),
)

# Name in lower case, without `-` and `_` -> documented spelling.
SPELLINGS = {
    name.replace("-", "").replace("_", ""): name
    for name in (*SUMMARIES, *(name for name, _, _ in VALUED))
}
