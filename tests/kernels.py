"""Kernels for tests, which share nothing with those of other tests that run beside them."""

from __future__ import annotations

import os
import uuid
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_core.paths import jupyter_runtime_dir


class UnsharedKernelManager(KernelManager):
    """Starts a kernel that shares nothing with others, and says so when it cannot start.

    It listens in the file system.  A TCP port is found by the manager, let go, and taken again
    by the kernel: by then it may be somebody else's, for the ranks of other tests take ports
    all the time, and the kernel dies.  Nor does it write to the history of who runs the tests,
    a data base that kernels lock.
    """

    def __init__(self, **settings: Any) -> None:
        folder = jupyter_runtime_dir()
        os.makedirs(folder, mode=0o700, exist_ok=True)  # as Jupyter does when it first starts
        socket = os.path.join(folder, f"kernel-{uuid.uuid4()}")
        super().__init__(transport="ipc", ip=socket, **settings)

    def start_kernel(self, **settings: Any) -> None:
        """Start it; what it writes to standard error is not thrown away, as nbval would."""
        output = settings.pop("stderr", None)
        if output is not None:
            output.close()
        quiet = ["--HistoryManager.enabled=False"]
        super().start_kernel(extra_arguments=quiet, **settings)


def start_kernel(**settings: Any) -> tuple[KernelManager, BlockingKernelClient]:
    """Start a kernel and wait until it answers; ``settings`` are those of ``Popen``."""
    manager = UnsharedKernelManager(kernel_name="python3")
    manager.start_kernel(**settings)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
    except RuntimeError:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        raise
    return manager, client
