"""Every way of torch's to communicate is recorded or refused; a new one is named here.

The recording group stands between a program and its transport.  What a newer torch adds beside it
has to be looked at by a person: these tests say which name it is.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import distributed_c10d as c10d

from headcount.rank.arguments import COLLECTIVES, OTHER_NAME, REFUSED
from headcount.rank.recording_group import RecordingGroup
from headcount.simulation.group import SimulatedGroup

#: Names of ``dist.ProcessGroup`` that send nothing to other ranks, by the reason.
NOT_COMMUNICATING = {
    "a constant or a type": (
        "BackendType", "CUSTOM", "GLOO", "MPI", "NCCL", "UCC", "UNDEFINED", "XCCL",
    ),
    "tells something about the group": (
        "_backend_id", "_device_types", "_get_backend", "_get_backend_name",
        "_get_sequence_number_for_group", "_has_hooks", "_id", "bound_device_id", "get_backend",
        "get_group_store", "get_reconfigure_handle", "group_desc", "group_name", "name", "rank",
        "size", "supports_abort_hooks", "supports_completion_hooks", "supports_reconfigure",
        "supports_window", "use_pg_for_symm_mem_rendezvous",
    ),
    "turns it into another object of C++, or back": ("_pybind11_conduit_v1_", "boxed", "unbox"),
    "sets something in this process": (
        "_add_ephemeral_timeout", "_enable_collectives_timing", "_register_on_completion_hook",
        "_set_group_desc", "_set_group_name", "register_abort_hook", "register_post_hook",
        "register_pre_hook", "set_timeout", "unregister_abort_hook", "unregister_post_hook",
        "unregister_pre_hook",
    ),
    "concerns the backends of torch's own groups, and a recording group has none": (
        "_register_backend", "_set_default_backend", "_set_sequence_number_for_group",
        "_wait_for_pending_works", "abort", "shutdown",
    ),
}  # fmt: skip

#: Functions of ``torch.distributed`` by how they communicate.
FUNCTIONS = {
    "calls the group's methods": (
        "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
        "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
        "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
        "gather", "gather_into_tensor", "gather_object", "gather_single", "irecv", "isend",
        "monitored_barrier", "recv", "recv_object_list", "reduce", "reduce_scatter",
        "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list",
        "send", "send_object_list",
    ),
    "makes or ends groups, through functions that the guard replaces": (
        "destroy_process_group", "init_process_group", "new_group", "new_subgroups",
        "new_subgroups_by_enumeration",
    ),
    "refuses a group that does not support it": ("shrink_group", "split_group"),
    "tells or sets something in this process": (
        "get_backend", "get_backend_config", "get_backend_impl", "get_debug_level",
        "get_default_backend_for_device", "get_global_rank", "get_group_rank",
        "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank",
        "get_world_size", "is_backend_available", "is_gloo_available", "is_initialized",
        "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
        "is_xccl_available", "record_comm", "set_timeout", "supports_complex",
    ),
}  # fmt: skip

#: Functional collectives, and the operators behind them, by how they communicate.
FUNCTIONAL = {
    "calls the group's methods": (
        "all_gather_inplace", "all_gather_into_tensor", "all_gather_into_tensor_coalesced",
        "all_gather_into_tensor_out", "all_gather_single", "all_gather_single_autograd",
        "all_gather_single_coalesced", "all_gather_tensor", "all_gather_tensor_autograd",
        "all_gather_tensor_inplace", "all_reduce", "all_reduce_", "all_reduce_coalesced",
        "all_reduce_coalesced_", "all_reduce_inplace", "all_to_all_inplace", "all_to_all_single",
        "all_to_all_single_autograd", "batch_p2p_ops", "batch_p2p_ops_inplace", "broadcast",
        "broadcast_", "irecv", "irecv_inplace", "isend", "isend_inplace", "permute_tensor",
        "reduce_scatter_inplace", "reduce_scatter_single", "reduce_scatter_single_autograd",
        "reduce_scatter_single_coalesced", "reduce_scatter_tensor",
        "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced",
        "reduce_scatter_tensor_inplace", "reduce_scatter_tensor_out",
    ),
    "waits for requests of the group's methods": ("wait_tensor", "wait_tensors"),
    "concerns the compiler or autograd": (
        "_wrap_tensor_autograd", "allow_inflight_collective_as_graph_input_ctx",
    ),
}  # fmt: skip


def all_of(table):
    return {name for names in table.values() for name in names}


def said(names, what, mend):
    return f"torch {torch.__version__} has {what} {', '.join(sorted(names))}: {mend}"


# The methods of a process group. ---------------------------------------------------------


@pytest.mark.parametrize("kind", [RecordingGroup, SimulatedGroup])
def test_every_method_of_a_process_group_is_recorded_or_refused_or_sends_nothing(kind):
    known = set(vars(kind)) | all_of(NOT_COMMUNICATING)
    new = {n for n in dir(dist.ProcessGroup) if not n.startswith("__")} - known
    mend = f"{kind.__name__} has to record or refuse it, or NOT_COMMUNICATING to say why not"
    assert not new, said(new, "methods of ProcessGroup that nobody has looked at:", mend)


def test_what_is_recorded_or_refused_is_not_said_to_send_nothing():
    assert not all_of(NOT_COMMUNICATING) & {*COLLECTIVES, *REFUSED, "send", "recv"}


def test_every_recorded_collective_is_one_of_torchs():
    """By its old or its new name; a name that no torch of ours has would be left over."""
    # torch 2.15 alone has these two
    newest = {"gather_into_tensor", "gather_single"}
    for name in COLLECTIVES.keys() - newest:
        names = {name, OTHER_NAME.get(name, name)}
        assert names & set(dir(dist.ProcessGroup)), name


# The dispatcher's operators. -------------------------------------------------------------


def operators(namespace):
    return {
        name.partition("::")[2].partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith(f"{namespace}::")
    }


def schema(name):
    operator = getattr(torch.ops.c10d, name)
    return str(getattr(operator, operator.overloads()[0])._schema)


def test_every_c10d_operator_is_refused():
    """The guard overrides those that have a kernel for the CPU, and so has to see all of them."""
    inside = torch._C._dispatch_has_kernel_for_dispatch_key
    new = {name for name in operators("c10d") if not inside(f"c10d::{name}", "CPU")}
    mend = "override_dispatcher refuses operators on CPU tensors alone"
    assert not new, said(new, "c10d operators without a kernel for the CPU:", mend)


#: Calls each operator, with arguments of the types that it takes.
CALLS = """
import sys
sys.argv[0] = "-m"  # as in a command: the import of headcount starts nothing
import torch, torch.distributed as dist
from headcount.rank.guard import override_dispatcher
library = override_dispatcher()
tensor, group = torch.ones(1), dist.ProcessGroup(0, 1)
values = {
    "Tensor": tensor, "List[Tensor]": [tensor], "List[List[Tensor]]": [[tensor]], "int": 0,
    "bool": False, "List[int]": [1], "number": 1.0,
}
for name in sys.argv[1:]:
    operator = getattr(torch.ops.c10d, name)
    arguments = []
    for argument in getattr(operator, operator.overloads()[0])._schema.arguments:
        kind = str(argument.type)
        arguments.append(group.boxed() if "ProcessGroup" in kind else values.get(kind))
    try:
        operator(*arguments)
    except RuntimeError as error:
        print(name, "refused" if "is closed in a recorded world" in str(error) else error)
    else:
        print(name, "called")
"""


@pytest.mark.exhaustive
def test_every_c10d_operator_refuses_a_call():
    # Python has no value for a reduction
    names = [name for name in sorted(operators("c10d")) if "ReduceOp" not in schema(name)]
    command = [sys.executable, "-c", CALLS, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} refused" for name in names]


@pytest.mark.parametrize(
    "namespace", ["_c10d_functional", "_c10d_functional_autograd", "c10d_functional"]
)
def test_every_functional_operator_is_known(namespace):
    new = operators(namespace) - all_of(FUNCTIONAL)
    mend = "see whether it calls the group's methods, and add it to FUNCTIONAL"
    assert not new, said(new, f"operators in {namespace} that nobody has looked at:", mend)


# Functions. ------------------------------------------------------------------------------


def test_every_function_of_torch_distributed_is_known():
    # to ask a deprecated name for its class is to use it, and warns
    functions = {n for n in c10d.__all__ if type(vars(c10d)[n]) is types.FunctionType}
    mend = "see how it communicates, and add it to FUNCTIONS"
    new = functions - all_of(FUNCTIONS)
    assert not new, said(new, "functions in torch.distributed that nobody has looked at:", mend)


def test_every_functional_collective_is_known():
    helpers = ("_backward", "_setup_context", "_meta")
    new = {
        name
        for name, value in vars(functional).items()
        if getattr(value, "__module__", "") == functional.__name__
        and inspect.isroutine(value)
        and not name.startswith("_")
        and not name.endswith(helpers)
    } - all_of(FUNCTIONAL)
    mend = "see whether it calls the group's methods, and add it to FUNCTIONAL"
    assert not new, said(new, "functional collectives that nobody has looked at:", mend)
