"""You add recv or send in place of what has come: recv is the place for the result, and holds
whatever was there before. Add the buffer into which you have received; and see that what goes round
first is a copy of your own send."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
# or: BUFFER = torch.clone
# or: SECOND = "recv"
# or: SECOND = "came"; BUFFER = torch.clone
# With its first values it is the error of pytorch#31572, in words of our own.
import torch
import torch.distributed as dist

#: What is added in every second step.
SECOND = "send"
#: What the two buffers hold at first.
BUFFER = torch.zeros_like


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    buffers = [BUFFER(send), BUFFER(send)]
    total = send.clone()
    for step in range(n - 1):
        out, came = buffers[step % 2], buffers[(step + 1) % 2]
        request = dist.isend(out, right)
        dist.recv(came, left)
        total += recv if step % 2 == 0 else {"send": send, "recv": recv, "came": came}[SECOND]
        request.wait()
    recv.copy_(total)
