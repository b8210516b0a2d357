"""A worker of the example: says that it started, works until it is told to finish, and ends.

It ends by itself when its host does, as a good worker should.
"""

import sys

print("started", flush=True)
order = sys.stdin.readline()
if order:
    print("done", flush=True)
