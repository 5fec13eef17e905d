"""The workbench: a page in the browser for those who write policies and have no editor set up.

state.py, preview.py, link.py    what is shown, of files and choices: values in, values out
folder.py                        saves files
access.py, server.py             who may ask, and the server
page.py                          the page, by NiceGUI"""
