"""Parts of a page for which something else holds than for the page."""
