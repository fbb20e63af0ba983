"""What holds for every test: those of the code, and the notebooks that nbval runs."""

import os

import nbval.kernel

from tests.kernels import UnsharedKernelManager

# They judge solutions, stubs and known mistakes, and none of it is a learner's
# progress.  Processes and kernels that the tests start inherit it.
os.environ["GRADER_PROGRESS"] = ""

nbval.kernel.KernelManager = UnsharedKernelManager
