"""The types of the wire contract."""

from ._generated import *  # noqa: F403
