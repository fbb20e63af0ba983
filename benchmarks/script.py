"""What ``run`` costs beside plain ``torchrun``, on gloo: the start, a step, and small operations.

    python -m benchmarks.script [--times 5]

The same script runs under both in turn, on two ranks: 20 steps of DistributedDataParallel with
10 MB of gradients, 500 messages of 16 bytes there and 500 back, 500 ``all_reduce`` of 16 bytes, and
2,000 and 8,000 messages in flight at once.  Printed is the median of each and the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
import json, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DDP(torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(10)]))
batch = torch.ones(16, 512)

def step():
    model(batch).sum().backward()
    model.zero_grad()

for _ in range(3):
    step()
dist.barrier()
began = time.perf_counter()
for _ in range(20):
    step()
steps = (time.perf_counter() - began) / 20
small = torch.ones(4)
dist.barrier()
began = time.perf_counter()
for _ in range(500):
    if rank == 0:
        dist.send(small, 1)
        dist.recv(small, 1)
    else:
        dist.recv(small, 0)
        dist.send(small, 0)
messages = time.perf_counter() - began

def together(count):
    buffers = [torch.zeros(4) for _ in range(count)]
    dist.barrier()
    began = time.perf_counter()
    start = dist.irecv if rank else dist.isend
    for request in [start(one, 1 - rank) for one in buffers]:
        request.wait()
    return time.perf_counter() - began

few, many = together(2000), together(8000)
dist.barrier()
began = time.perf_counter()
for _ in range(500):
    dist.all_reduce(small)
sums = time.perf_counter() - began
if rank == 0:
    found = {
        "a step": steps,
        "1,000 messages": messages,
        "2,000 messages in flight": few,
        "8,000 messages in flight": many,
        "500 all_reduce": sums,
    }
    with open(os.environ["RESULT"], "w") as file:
        json.dump(found, file)
dist.destroy_process_group()
"""

#: How it is started, by what is compared.
COMMANDS = {
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    "run": ["-m", "grader", "run", "--ranks", "2"],
}


def measure(command: Sequence[str], folder: Path) -> dict[str, float]:
    """Run the script once; return the seconds of each part, and of the whole."""
    script, result = folder / "train.py", folder / "result.json"
    script.write_text(SCRIPT)
    variables = {**os.environ, "RESULT": str(result), "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *command, str(script)], env=variables, check=True, capture_output=True
    )
    whole = time.perf_counter() - began
    return {**json.loads(result.read_text()), "the whole command": whole}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the medians, and their ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=5, help="how often each runs (5)")
    request = parser.parse_args(arguments)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(request.times):
            for name, command in COMMANDS.items():
                found[name].append(measure(command, Path(folder)))
    print(f"{'seconds, median of ' + str(request.times):<28}torchrun       run     ratio")
    for part in found["run"][0]:
        plain, ours = (
            statistics.median(one[part] for one in found[name]) for name in ("torchrun", "run")
        )
        print(f"{part:<28}{plain:>8.4f}  {ours:>8.4f}  {ours / plain:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
