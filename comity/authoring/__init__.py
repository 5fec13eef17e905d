"""Tools for those who write policies: lint, explanations, a language server and a page in the browser."""
