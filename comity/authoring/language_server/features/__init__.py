"""The features of the language server, as functions of a document."""
