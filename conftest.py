"""What holds for every test: those of the code, and the notebooks that nbval runs."""

import os
import uuid
from typing import Any

import nbval.kernel
from jupyter_client.manager import KernelManager
from jupyter_core.paths import jupyter_runtime_dir

# They judge solutions, stubs and known mistakes, and none of it is a learner's
# progress.  Processes and kernels that the tests start inherit it.
os.environ["GRADER_PROGRESS"] = ""


class _Unshared(KernelManager):
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
        settings.pop("stderr").close()  # nbval throws it away, and with it why a kernel died
        quiet = ["--HistoryManager.enabled=False"]
        super().start_kernel(extra_arguments=quiet, **settings)


nbval.kernel.KernelManager = _Unshared
