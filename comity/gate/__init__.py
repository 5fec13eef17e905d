"""A request's way to the network and back, for a crawl, a client or a browser.

fetching/    fetch the policy files of an origin, and keep them
request/     decide whether a request may go out, by its facts and by the site that leads to it
pace/        send requests no faster than each host allows
pages/       read the policies that responses state
run/         what all of them need: tasks, logs, console output
parts.py     the parts of one crawl or client, put together
options/     the settings of the operator, checked"""
