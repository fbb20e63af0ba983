"""The methods of a process group, by all names that torch 2.11 to 2.15 call them by.

2.13 renamed ``_allgather_base`` and its like to ``all_gather_single`` and kept both.
"""

from __future__ import annotations

__all__ = ["COLLECTIVES", "ONE_BY_ONE", "OTHER_NAME", "REFUSED", "SAME_SIZE"]

#: Every collective method of a process group, and the name that an exercise
#: allows it by.  Names on one line are one method under its old and new name.
COLLECTIVES: dict[str, str] = {
    "broadcast": "broadcast",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather",
    **dict.fromkeys(("_allgather_base", "all_gather_single"), "all_gather"),
    **dict.fromkeys(
        ("allgather_into_tensor_coalesced", "all_gather_single_coalesced"), "all_gather"
    ),
    "gather": "gather",
    **dict.fromkeys(("gather_into_tensor", "gather_single"), "gather"),
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    **dict.fromkeys(("_reduce_scatter_base", "reduce_scatter_single"), "reduce_scatter"),
    **dict.fromkeys(
        ("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"), "reduce_scatter"
    ),
    "alltoall": "all_to_all",
    **dict.fromkeys(("alltoall_base", "all_to_all_single"), "all_to_all"),
    "barrier": "barrier",
}

#: The same method under the name that another torch gives it.
OTHER_NAME = {
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "gather_into_tensor": "gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
OTHER_NAME |= {new: old for old, new in OTHER_NAME.items()}

#: Methods that gloo lacks and that are another one done for every pair of tensors.
ONE_BY_ONE = {
    **dict.fromkeys(
        ("allgather_into_tensor_coalesced", "all_gather_single_coalesced"), "_allgather_base"
    ),
    **dict.fromkeys(
        ("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"),
        "_reduce_scatter_base",
    ),
}

#: Methods that would make a group of their own, behind our back.
REFUSED = ("split_group", "merge_remote_group", "new_window", "reconfigure")

#: Collectives whose tensor, the first one named, is of one size on all ranks.
SAME_SIZE = frozenset({"broadcast", "all_reduce", "reduce"})
