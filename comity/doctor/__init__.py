"""`comity doctor`: what is installed, which settings count, and whether a crawl can use its parts.

command     the command, and its output
diagnosis   what the command has found, as values
extras      the extras of comity, and the packages that are missing
origins     the settings of a crawl, and where each is from
reach       the store, the shared state and the browser
"""
