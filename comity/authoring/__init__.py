"""Tools for authors of policies: lint, explanation, a language server, and a page in a browser."""
