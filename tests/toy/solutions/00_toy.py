# %% [markdown]
# # 00 · Toy
#
# ![a red square](square.png)

# %%
import torch
import torch.distributed as dist

# %% [markdown]
# ## Two exercises

# %%
def twice(x: torch.Tensor) -> torch.Tensor:
    """x doubled."""
    ### BEGIN SOLUTION
    # a comment is no line of code
    return 2 * x
    ### END SOLUTION


# %%
def helper():
    return "given to students as it is"


def pass_on(x: torch.Tensor) -> None:
    """Everyone's x becomes rank 0's."""
    rank = dist.get_rank()
    ### BEGIN SOLUTION
    if rank == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)
    ### END SOLUTION


print(helper())

# %% tags=["nbval-ignore-output"]
print(helper())

# %%
print(helper())
