"""`python -m taskforce_sidecar` is the command `taskforce`."""

from ._command import main

main()
