"""Commands of the `scrapy` tool."""

try:
    import comity.policies  # noqa: F401  # faults of plug-in formats show here
except ValueError as error:  # a PolicyError, but the failed package cannot give the class
    raise SystemExit(f"comity: {error}") from None
