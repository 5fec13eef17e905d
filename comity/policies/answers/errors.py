"""The error for mistakes in the operator's settings and files."""


class PolicyError(ValueError):
    """A mistake in one of the operator's settings or files, never in a file of a site."""
