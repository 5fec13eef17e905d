"""A language server (LSP 3.17): help for authors of policy files in their editors.

documents     a text, its lines, and positions in it as editors count them
statements    the names and values in a document, with their spans: in lines, XML, JSON and HTML
words         the words of the formats in each kind of file
outline       a document with the words of its formats
samples       paths and elements of the site, from the folder of the file
features/     a module for each feature, with functions of a document
tasks         a function for each request about one document
work          runs tasks, in worker processes if the document is large
server        the protocol

docs/language-server.md lists the features, and tells how to set up editors."""
