"""Records what chapter 18 shows of a GPU: ``python -m benchmarks.kernels``, on a machine with one.

The times of a layer norm by the host's clock and by events, and the names of
the operators and kernels in its profile, go into ``docs/recorded/kernels.json``
with the device, the versions and the date.  Without a GPU it says so, and
writes nothing: what has not been measured is not shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

#: Where the chapter looks for it.
RECORD = Path(__file__).resolve().parent.parent / "docs" / "recorded" / "kernels.json"

SIDE, WARMUP, ITERATIONS = 10_000, 5, 50


def measure() -> dict[str, Any]:
    """Everything that is recorded; needs a GPU."""
    x = torch.randn(SIDE, SIDE, device="cuda")

    def work() -> None:
        torch.nn.functional.layer_norm(x, x.shape[1:])

    for _ in range(WARMUP):
        work()
    host, pairs = [], []
    for _ in range(ITERATIONS):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        started = time.perf_counter()
        work()
        host.append(1e3 * (time.perf_counter() - started))
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=both, acc_events=True) as prof:
        work()
        torch.cuda.synchronize()
    events = prof.events()
    on_host = [e.name for e in events if e.device_type == torch.autograd.DeviceType.CPU]
    chain = ("aten::layer_norm", "aten::native_layer_norm", "cudaLaunchKernel")
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "shape": [SIDE, SIDE],
        "iterations": ITERATIONS,
        "host_ms": statistics.median(host),
        "events_ms": statistics.median(b.elapsed_time(e) for b, e in pairs),
        "operators": [name for name in chain if name in on_host],
        "kernels": sorted({e.name for e in events} - set(on_host)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, if there is something to record."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None).parse_args(
        arguments
    )
    if not torch.cuda.is_available():
        print("there is no GPU here: nothing was recorded", file=sys.stderr)
        return 1
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    print(RECORD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
