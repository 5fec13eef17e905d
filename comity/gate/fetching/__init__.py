"""The client for policy files, and for the resources that they name.

No middleware, cache or handler of the project's crawl can answer, change or cut its requests.

fetcher.py      the policies of an origin, for one crawl
files.py        the policy files of an origin, shared by the crawls of a process
policy_copy.py  one policy file from one fetch to the next
freshness.py    the time for which an answer may be used (RFC 9111)
store.py        policy files on disk, between crawls and processes
redirects.py    one file over all its redirects, within its deadline
client.py       the fields of a request, and the requests to one origin over one connection
connection.py   HTTP/1.1 over one connection
network.py      connections: names, addresses, TLS
reach.py        the reach of addresses, and the addresses that a site may lead to
proxies.py      the choice of a proxy
options.py      the operator's settings of the client
causes.py       the causes of failures, and a remedy for each"""
