"""The types of the wire contract, and of errors."""

from . import _generated
from ._errors import (
    ClientCode,
    ErrorDetails,
    LocalCode,
    LocalDetails,
    ProtocolDetails,
    ReplayDetails,
    SidecarLostDetails,
)
from ._generated import *  # noqa: F403

__all__ = [
    "ClientCode",
    "ErrorDetails",
    "LocalCode",
    "LocalDetails",
    "ProtocolDetails",
    "ReplayDetails",
    "SidecarLostDetails",
]
__all__ += _generated.__all__
