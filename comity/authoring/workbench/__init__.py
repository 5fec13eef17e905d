"""The workbench: a page in the browser for authors of policies without an editor.

state.py, preview.py, link.py, help.py, expectations.py
    the content of the page, from files and choices: values in, values out
desk.py, folder.py
    the open files, and the folder to save them in
access.py, server.py
    the access check, and the server
page.py, markup.py, editor.js
    the page, by NiceGUI, its HTML, and its editor"""
