"""The commands of `comity`, a module each: `add_options(parser)`, `run(options) -> status`."""

LINT = "find the problems in robots.txt, ai.txt and other policy files"  # its summary
