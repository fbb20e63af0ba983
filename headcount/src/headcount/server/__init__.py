"""The processes that ranks are forked from, and the programs that their children run.

There are the fork server, the server that makes sandboxes, and what runs in their children: a
rank, many simulated ranks, the parser of a submitted file, or a compiler.  Each module is run in
a process of its own, which :mod:`headcount.launch` starts.  Its door:
:mod:`headcount.server.fork_server`.
"""
