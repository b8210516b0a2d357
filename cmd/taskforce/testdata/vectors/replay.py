#!/usr/bin/env python3
"""Replay recorded traces against a sidecar and compare every answer.

    replay.py [--server 'bin/taskforce serve --root {root}'] [-v] FILE_OR_DIR...

Each trace is a JSON file: {"name", "steps": [...]} and, where the trace starts on a database that
another implementation wrote, "start_db" (a gzipped SQLite file beside the trace) and "bindings"
("$rN" -> reservation id in that database). A step is one of
    {"restart": true}                         stop the sidecar (close its stdin), start it again
    {"call": M, "params": P, "error": CODE}   the call must fail with error.data.code == CODE
    {"call": M, "params": P, "result": R}     the call must succeed; governor results must equal R,
                                              task results must contain every member of R
"$rN" stands for the N-th reservation id, "$time" for a UTC ISO 8601 time with milliseconds and Z.
Answers were recorded from the reference implementation of the contract, GOVERNOR.md.
Exit status 0 when all traces pass. The last line reads 'N passed, N failed'.
"""
import argparse, gzip, json, os, pathlib, re, shlex, shutil, subprocess, sys, tempfile

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


class Sidecar:
    def __init__(self, command, root):
        argv = [a.replace("{root}", root) for a in shlex.split(command)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next_id = 0

    def call(self, method, params):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the sidecar ended, status {self.process.wait()}")
            reply = json.loads(line)
            if reply.get("id") == self.next_id:
                return reply

    def stop(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=20)
        self.process.stdout.close()
        if status != 0:
            raise RuntimeError(f"exit status {status} after its input closed")


def fill(value, bound):
    if isinstance(value, str):
        return bound.get(value, value)
    if isinstance(value, list):
        return [fill(v, bound) for v in value]
    if isinstance(value, dict):
        return {k: fill(v, bound) for k, v in value.items()}
    return value


def differ(want, got, bound, exact, path="result"):
    """The first difference as text, or None. Binds "$rN" at its first appearance."""
    if isinstance(want, str) and re.fullmatch(r"\$r\d+", want):
        if want not in bound and isinstance(got, str):
            bound[want] = got
        return None if bound.get(want) == got else f"{path}: want {want} = {bound.get(want)!r}, got {got!r}"
    if want == "$time":
        return None if isinstance(got, str) and TIME.match(got) else f"{path}: want a time, got {got!r}"
    if isinstance(want, dict) and isinstance(got, dict):
        extra = set(got) - set(want)
        if exact and extra:
            return f"{path}: unexpected members {sorted(extra)}"
        for key, value in want.items():
            if key not in got:
                return f"{path}.{key}: missing"
            found = differ(value, got[key], bound, exact, f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return f"{path}: want {len(want)} items, got {len(got)}"
        for i, (w, g) in enumerate(zip(want, got)):
            found = differ(w, g, bound, exact, f"{path}[{i}]")
            if found:
                return found
        return None
    same = type(want) is type(got) and want == got
    return None if same else f"{path}: want {want!r}, got {got!r}"


def order_holds(want, got, bound):
    """Holds are ordered by reservation id, which is random: check that order, then align both sides."""
    key = lambda h: (h["reservation_id"], h["resource_key"].encode("utf-8", "surrogatepass"))
    if got["holds"] != sorted(got["holds"], key=key):
        return "result.holds: not ordered by (reservation_id, resource_key)"
    alias = {actual: name for name, actual in bound.items()}
    want["holds"].sort(key=key)
    got["holds"].sort(key=lambda h: (alias.get(h["reservation_id"], ""), key(h)[1]))
    return None


def replay(file, command):
    trace = json.loads(file.read_text())
    root = tempfile.mkdtemp(prefix="replay-")
    bound = dict(trace.get("bindings", {}))
    sidecar = None
    try:
        if "start_db" in trace:
            with gzip.open(file.parent / trace["start_db"]) as src, open(os.path.join(root, "taskforce.db"), "wb") as dst:
                shutil.copyfileobj(src, dst)
        sidecar = Sidecar(command, root)
        for number, step in enumerate(trace["steps"]):
            if step.get("restart"):
                sidecar.stop()
                sidecar = Sidecar(command, root)
                continue
            reply = sidecar.call(step["call"], fill(step["params"], bound))
            where = f"step {number} {step['call']}"
            if "error" in step:
                code = ((reply.get("error") or {}).get("data") or {}).get("code")
                if code != step["error"]:
                    return f"{where}: want {step['error']}, got {json.dumps(reply)[:300]}"
            elif "error" in reply:
                return f"{where}: want a result, got {json.dumps(reply['error'])[:300]}"
            else:
                found = None
                if step["call"] == "governor.snapshot":
                    found = order_holds(step["result"], reply["result"], bound)
                found = found or differ(step["result"], reply["result"], bound, step["call"].startswith("governor."))
                if found:
                    return f"{where}: {found}"
        sidecar.stop()
        sidecar = None
        return None
    except (RuntimeError, BrokenPipeError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        if sidecar is not None:
            sidecar.process.kill()
            sidecar.process.wait()
        shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default="bin/taskforce serve --root {root}")
    parser.add_argument("-v", action="store_true", help="name passing traces too")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    files = sorted(f for p in args.paths for f in ([p] if p.is_file() else p.rglob("trace-*.json")))
    passed = failed = 0
    for file in files:
        why = replay(file, args.server)
        passed, failed = passed + (why is None), failed + (why is not None)
        if why:
            print(f"FAIL {file.parent.name}/{file.name}: {why}", flush=True)
        elif args.v:
            print(f"ok   {file.parent.name}/{file.name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed else 1


if __name__ == "__main__":
    sys.exit(main())
