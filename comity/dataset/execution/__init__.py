"""The execution of passes: by processes or engines, on more data than memory can hold."""
