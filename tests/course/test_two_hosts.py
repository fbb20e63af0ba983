"""``bench`` over a wire whose delay and rate are known finds both again."""

from __future__ import annotations

import json
import os
import shutil
import sys

import numpy as np
import pytest

from grader.course.costs import factor
from tests.two_hosts import ADDRESSES, Wire, start_host

pytestmark = pytest.mark.slow

#: Seconds one way, and bytes a second: slow enough for a wire of Python.
DELAY, RATE = 0.02, 4e6


def why_not() -> str:
    """What is missing for hosts; empty if nothing is."""
    for program, package in (("unshare", "util-linux"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            return f"there is no {program} here: apt install {package}"
    try:
        host, device = start_host(0, ["/bin/true"])
    except OSError as error:
        return f"no namespaces with a network device here: {error}"
    host.communicate()
    os.close(device)
    return ""


@pytest.fixture(scope="module")
def measured():
    """Bytes that rank 1 sends to rank 0, and seconds, as rank 0 printed them."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    command = [sys.executable, "-m", "grader", "bench", "gather", "--json"]
    command += ["--min-bytes", "4K", "--max-bytes", "1M", "--iters", "4", "--warmup", "2"]
    # the hosts' networks are their own, so no port can be taken there
    meeting = {"MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
    hosts, devices = zip(
        *(start_host(r, command, RANK=str(r), LOCAL_RANK="0", **meeting) for r in (0, 1)),
        strict=True,
    )
    wire = Wire(devices, DELAY, RATE)
    try:
        said = [host.communicate(timeout=100) for host in hosts]
    finally:
        for host in hosts:
            host.kill()
            host.wait()
        wire.close()
    assert [host.returncode for host in hosts] == [0, 0], said
    assert said[1][0] == ""  # rank 0 shows what was measured
    rows = json.loads(said[0][0])["rows"]
    assert not any(row["wrong"] for row in rows)
    return np.array([(row["nbytes"] * factor("gather", 2), row["seconds"]) for row in rows])


@pytest.mark.exhaustive
def test_delay_and_rate_of_the_wire_are_found_again(measured):
    sizes, seconds = measured.T
    # relative errors count: the fit is to hold for small messages as well as for large ones
    beta, alpha = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    # gloo sends when the receiver has said that it is ready: two ways, and neither one nor three;
    # a busy machine adds some of its own
    assert alpha == pytest.approx(2 * DELAY, rel=0.4)
    assert 1 / beta == pytest.approx(RATE, rel=0.2)
