"""python-lsp-jsonrpc speaks Content-Length framing, as Python language servers do."""

import os
import subprocess
import tempfile
import threading

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.exceptions import JsonRpcException
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

LEAD = {"role": "lead", "sessionId": "peer"}
RUN = "peer run"

with tempfile.TemporaryDirectory() as root:
    sidecar = subprocess.Popen(
        [os.environ.get("TASKFORCE_BINARY", "taskforce"), "serve", "--root", root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    writer = JsonRpcStreamWriter(sidecar.stdin)
    endpoint = Endpoint({}, writer.write)
    reader = threading.Thread(target=JsonRpcStreamReader(sidecar.stdout).listen, args=(endpoint.consume,))
    reader.start()

    def call(method, **params):
        return endpoint.request(method, params).result(timeout=30)

    task = call("task.open", input={"title": "try a client"}, runId=RUN, authority=LEAD)
    claim = {"task_id": task["task_id"], "owner": "peer", "owner_session": "agent"}
    call("task.claim", input=claim, runId=RUN, authority=LEAD)
    wanted = {
        "operation_key": "k",
        "task_id": task["task_id"],
        "generation": 0,
        "mode": "write",
        "kind": "new",
        "resources": ["é\u2028😀"],
    }
    reservation = call("governor.reserve", input=wanted, runId=RUN, authority=LEAD)
    assert reservation["resources"] == wanted["resources"], reservation
    try:
        call("governor.reserve", input={**wanted, "operation_key": "other"}, runId=RUN, authority=LEAD)
        raise SystemExit("a stale generation was admitted")
    except JsonRpcException as refusal:
        assert refusal.code == -32002 and refusal.data["code"] == "E_GOVERNOR_FENCE", refusal
    fence = {"reservation_id": reservation["reservation_id"], "generation": reservation["generation"]}
    settled = call("governor.settle", input={**fence, "proof": {"kind": "never_started"}}, runId=RUN, authority=LEAD)
    assert settled["state"] == "settled", settled

    endpoint.request("shutdown").result(timeout=30)
    endpoint.notify("exit")
    assert sidecar.wait(timeout=30) == 0, sidecar.returncode
    reader.join(timeout=30)
    endpoint.shutdown()
    sidecar.stdin.close()
    sidecar.stdout.close()
print("ok python-lsp-jsonrpc")
