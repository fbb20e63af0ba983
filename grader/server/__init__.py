"""The processes that ranks are forked from, and what each of them does once forked.

The fork server, the server that makes sandboxes, and what runs in their children: a rank, many
simulated ranks, the parser of a stranger's file, or a compiler.  Nothing here starts by itself:
:mod:`grader.launch` does that.  Its door: :mod:`grader.server.fork_server`.
"""
