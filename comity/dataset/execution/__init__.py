"""The execution of passes: by processes and engines, and beyond what memory holds."""
