"""The client for policy files and for what they name: nothing of the project's crawl can answer, change or cut what it asks for.

files.py        the files of an origin, out of the store or asked for, shared by the crawls of a process
redirects.py    one file over all its redirects, within its deadline
client.py       what a request carries, and one origin's requests over one connection
connection.py   HTTP/1.1 over one connection
network.py      how a connection comes about: names, addresses, TLS
proxies.py      which proxy, if any
options.py      what the operator's settings say of it all"""
