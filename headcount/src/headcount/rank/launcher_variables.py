"""The variables by which a launcher tells each process which rank it is, on one machine."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["LAUNCHERS", "launcher_variables"]


def _torchrun(rank: str, size: str) -> dict[str, str]:
    return {
        "RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank, "GROUP_RANK": "0",
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "ROLE_WORLD_SIZE": size,
    }  # fmt: skip


def _slurm(rank: str, size: str) -> dict[str, str]:
    """Return what srun sets: https://slurm.schedmd.com/srun.html, its output variables."""
    tasks = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE")
    return {
        **dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID"), rank),
        **dict.fromkeys((*tasks, "SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"), size),
        **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES"), "1"),
        **dict.fromkeys(("SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"), _HOST),
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), "1"),
        "SLURM_STEP_ID": "0", "SLURM_NODEID": "0", "SLURMD_NODENAME": _HOST,
        "SLURM_GTIDS": ",".join(map(str, range(int(size)))),
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
    }  # fmt: skip


def _mpi(rank: str, size: str) -> dict[str, str]:
    """Return what Open MPI's, MPICH's and MVAPICH's launchers set.

    https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
    """
    ranks = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "MPI_LOCALRANKID")
    sizes = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
    return {
        **dict.fromkeys((*ranks, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK"), rank),
        **dict.fromkeys((*sizes, "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"), size),
        "OMPI_COMM_WORLD_NODE_RANK": rank,
    }


_HOST = "localhost"

_BY_LAUNCHER: dict[str, Callable[[str, str], dict[str, str]]] = {
    "torchrun": _torchrun,
    "slurm": _slurm,
    "mpi": _mpi,
}

#: The launchers, by the names of the command line; the first one is the default.
LAUNCHERS = (*_BY_LAUNCHER,)


def launcher_variables(launcher: str, rank: int, size: int) -> dict[str, str]:
    """Return what a launcher sets for a rank, of as many on this machine."""
    return _BY_LAUNCHER[launcher](str(rank), str(size))
