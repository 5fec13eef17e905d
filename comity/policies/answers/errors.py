"""The error for mistakes of the operator."""


class PolicyError(ValueError):
    """A mistake in something that the operator wrote: a setting or a file of ours, never in what a site published."""
