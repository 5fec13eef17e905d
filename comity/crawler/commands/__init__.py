"""Commands of the `scrapy` tool."""

try:
    import comity.policies  # noqa: F401  # what is wrong with the formats of others shows here
except ValueError as error:  # PolicyError; no module of a package can be had that did not come up
    raise SystemExit(f"comity: {error}") from None
