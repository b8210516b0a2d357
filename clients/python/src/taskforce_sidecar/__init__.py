"""Client of the Taskforce sidecar.

`Client` blocks, `AsyncClient` is for asyncio; both offer every call of the wire contract with the
contract's own names and argument order. The types are in `taskforce_sidecar.types`.
"""

from ._async_client import AsyncClient
from ._client import Client
from ._errors import ClientCode, ErrorDetails, TaskforceError
from ._execution import ExecutionRequest, with_reservation
from ._fence import ReservationFence, fence
from ._recovery import Decision, Option, open_decisions
from ._resources import WorktreeKeys, file_key, worktree_keys
from ._version import __version__
from ._watch import AsyncWatch, Watch

__all__ = [
    "AsyncClient",
    "AsyncWatch",
    "Client",
    "ClientCode",
    "Decision",
    "ErrorDetails",
    "ExecutionRequest",
    "Option",
    "ReservationFence",
    "TaskforceError",
    "Watch",
    "WorktreeKeys",
    "__version__",
    "fence",
    "file_key",
    "open_decisions",
    "with_reservation",
    "worktree_keys",
]
