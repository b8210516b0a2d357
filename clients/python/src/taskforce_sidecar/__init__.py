"""Client of the Taskforce sidecar.

`Client` blocks, `AsyncClient` is for asyncio; both offer every call of the wire contract with the
contract's own names and argument order. The types are in `taskforce_sidecar.types`.
"""

from ._async_client import AsyncClient
from ._client import Client
from ._errors import ClientCode, ErrorDetails, TaskforceError
from ._fence import ReservationFence, fence
from ._version import __version__
from ._watch import AsyncWatch, Watch

__all__ = [
    "AsyncClient",
    "AsyncWatch",
    "Client",
    "ClientCode",
    "ErrorDetails",
    "ReservationFence",
    "TaskforceError",
    "Watch",
    "__version__",
    "fence",
]
