"""Chapter 17: a matrix product on several ranks, cut along its columns, inside, or by positions."""

from grader.core.verdict import Diagnosis
from grader.course.chapters.sharded import (
    column_gradients,
    columns,
    joined_in_rank,
    least_of_columns,
    least_of_rows,
    magnitudes,
    multiplied_in_rank,
    parts_of,
    pieces,
    product,
    row_gradients,
    rows,
    shards,
    split_in_rank,
    splits,
    summed_in_rank,
    terms,
    unseen,
    whole_of,
)  # fmt: skip
from grader.course.chapters.sharded_mistakes import COLUMN, ROW, SHARD, UNSHARD
from grader.course.exercise import Exercise
from grader.course.limits import moved

_DEADLOCK = (
    "Every rank makes the same calls in the same order, in backward as well. Which of them does a"
    " rank leave out?"
)
_DTYPE = (
    "The result has the dtype of what came in. Where does another one come from: a buffer made"
    " without it, or a conversion?"
)

_TIMEOUT = (
    "Does the loop at that line ever end? Or does it call the functional collectives of torch?"
    " Those load torch's compiler first, which takes longer than a call may compute: use"
    " dist.all_reduce and dist.all_gather in a torch.autograd.Function."
)

column_parallel = Exercise(
    signature="column_parallel(x: Tensor, weight_shard: Tensor) -> Tensor",
    summary="the whole product on every rank, of a weight whose columns are shared out",
    inputs=columns,
    adapter=multiplied_in_rank,
    expected=lambda c: pieces(c, product(c), column_gradients(c)),
    least=least_of_columns,
    reduced=terms,
    magnitude=lambda c: magnitudes(c, column_gradients),
    allowed=frozenset({"all_gather", "all_reduce"}),
    hints=(
        "Forward: x @ weight_shard gives this rank's columns of the product. Backward, two"
        " questions. The gradient of the whole product is there on every rank: which part of it"
        " belongs to this rank's columns? And x was used by every rank: whose gradients make up"
        " that of x?",
        "Two torch.autograd.Functions do it. One around x: forward passes x on, backward"
        " all_reduces the gradient. One around the rank's own columns: forward gathers everybody's,"
        " backward takes the rank's own columns of the gradient. Between them stands a plain"
        " product, which autograd knows.",
        "The widths of all ranks are what tensor_split makes of the number of columns, which an"
        " all_reduce adds up. Pad the product to the widest, all_gather, cut each piece to"
        " its width, torch.cat along -1; backward of that is the slice of the gradient that begins"
        " behind the columns of the ranks before. Around x stands Share: forward x.view_as(x),"
        " backward an all_reduce of a copy of the gradient.",
        "This is the whole answer:\n"
        "    def put_together(part, lengths, dim):\n"
        "        shape = list(part.shape)\n"
        "        shape[dim] = max(lengths)\n"
        "        padded = part.new_zeros(shape)\n"
        "        padded.narrow(dim, 0, part.shape[dim]).copy_(part)\n"
        "        parts = [torch.empty_like(padded) for _ in lengths]\n"
        "        dist.all_gather(parts, padded)\n"
        "        return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths)], dim)\n"
        "\n"
        "    class Share(torch.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, x):\n"
        "            return x.view_as(x)\n"
        "\n"
        "        @staticmethod\n"
        "        def backward(ctx, grad):\n"
        "            grad = grad.clone()  # contiguous, and ours\n"
        "            dist.all_reduce(grad)\n"
        "            return grad\n"
        "\n"
        "    class Columns(torch.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, part, widths):\n"
        "            return put_together(part, widths, part.dim() - 1)\n"
        "\n"
        "        @staticmethod\n"
        "        def backward(ctx, grad):\n"
        "            n, rank = dist.get_world_size(), dist.get_rank()\n"
        "            return grad.tensor_split(n, -1)[rank].contiguous(), None\n"
        "\n"
        "    def column_parallel(x, weight_shard):\n"
        "        total = torch.tensor(weight_shard.shape[1])\n"
        "        dist.all_reduce(total)\n"
        "        whole = torch.arange(int(total))\n"
        "        widths = [len(part) for part in whole.tensor_split(dist.get_world_size())]\n"
        "        return Columns.apply(Share.apply(x) @ weight_shard, widths)",
    ),
    mistakes=COLUMN,
    advice={
        Diagnosis.FORBIDDEN_CALL: "all_gather and all_reduce are all you need, and all that is"
        " allowed, in backward too.",
        Diagnosis.WRONG_SHAPE: "The result has the dimensions of x, but for the last: that has the"
        " columns of the whole weight, those of all ranks.",
        Diagnosis.WRONG_TYPE: "The result is returned. all_gather and all_reduce fill what they"
        " are given, and return nothing.",
        Diagnosis.WRONG_GRADIENT: "Two gradients: that of weight_shard is xᵀ times this rank's"
        " columns of the gradient; that of x is the sum over ranks of (those columns) times"
        " weight_shardᵀ.",
        Diagnosis.WRONG_VALUE: "Take two ranks with one column each. Which rank's column comes"
        " first, and is it there on both?",
        Diagnosis.INPUT_CHANGED: "x and weight_shard stay as they are: make new tensors.",
        Diagnosis.WRONG_DTYPE: _DTYPE,
        Diagnosis.DEADLOCK: _DEADLOCK,
        Diagnosis.TIMEOUT: _TIMEOUT,
    },
)

row_parallel = Exercise(
    signature="row_parallel(x_shard: Tensor, weight_shard: Tensor) -> Tensor",
    summary="the whole product on every rank, of two factors cut along the inner dimension",
    inputs=rows,
    adapter=summed_in_rank,
    remark=unseen,
    expected=lambda c: pieces(c, product(c), row_gradients(c)),
    least=least_of_rows,
    reduced=terms,
    magnitude=lambda c: magnitudes(c, row_gradients),
    allowed=frozenset({"all_reduce"}),
    hints=(
        "Each rank has some terms of the sum over the inner dimension. What is missing in forward?"
        " And in backward: what is the gradient of one term of a sum, if that of the sum is known?",
        "Forward: add up x_shard @ weight_shard over ranks. Backward: nothing is sent. Every rank"
        " has the same loss and so the same gradient of the sum, and that is the gradient of each"
        " term.",
        "This is the whole answer:\n"
        "    class Sum(torch.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, part):\n"
        "            total = part.clone()\n"
        "            dist.all_reduce(total)\n"
        "            return total\n"
        "\n"
        "        @staticmethod\n"
        "        def backward(ctx, grad):\n"
        "            return grad\n"
        "\n"
        "    def row_parallel(x_shard, weight_shard):\n"
        "        return Sum.apply(x_shard @ weight_shard)",
    ),
    mistakes=ROW,
    advice={
        Diagnosis.FORBIDDEN_CALL: "One all_reduce in forward is all you need, and all_reduce is all"
        " that is allowed.",
        Diagnosis.WRONG_SHAPE: "The result has the dimensions of x_shard, but for the last: that is"
        " as wide as weight_shard.",
        Diagnosis.WRONG_TYPE: "The result is returned. all_reduce works in place, and returns"
        " nothing.",
        Diagnosis.WRONG_GRADIENT: "The gradient of a sum is the gradient of each of its terms. So"
        " each rank's gradients are those of the plain product of its own shards.",
        Diagnosis.WRONG_VALUE: "Take two ranks, one number each: x0·w0 on one, x1·w1 on the other."
        " The result is their sum, on both.",
        Diagnosis.INPUT_CHANGED: "x_shard and weight_shard stay as they are: make new tensors.",
        Diagnosis.WRONG_DTYPE: _DTYPE,
        Diagnosis.DEADLOCK: _DEADLOCK,
        Diagnosis.TIMEOUT: _TIMEOUT,
    },
)

sequence_shard = Exercise(
    signature="sequence_shard(x: Tensor, dim: int = 1) -> Tensor",
    summary="this rank's part of x along dim; backward puts all ranks' gradients together",
    inputs=splits,
    adapter=split_in_rank,
    expected=parts_of,
    least=moved,
    allowed=frozenset({"all_gather"}),
    hints=(
        "Forward sends nothing: every rank has x. Backward: each rank has the gradient of its own"
        " part. Which ranks need the others'?",
        "Forward: x.tensor_split(n, dim)[rank], as a copy. Backward: an all_gather of the parts of"
        " the gradient, put together along dim. Parts of different lengths are padded to the"
        " longest for that, and cut when they have come.",
        "Write a torch.autograd.Function. In forward keep ctx.dim = dim and"
        " ctx.length = x.shape[dim]. In backward, the lengths of all parts are"
        " [len(t) for t in torch.arange(length).tensor_split(n)]; pad grad along dim with zeros to"
        " the longest, dist.all_gather, narrow each piece to its length, torch.cat. Return None for"
        " dim.",
        "This is the whole answer:\n"
        "    def put_together(part, lengths, dim):\n"
        "        shape = list(part.shape)\n"
        "        shape[dim] = max(lengths)\n"
        "        padded = part.new_zeros(shape)\n"
        "        padded.narrow(dim, 0, part.shape[dim]).copy_(part)\n"
        "        parts = [torch.empty_like(padded) for _ in lengths]\n"
        "        dist.all_gather(parts, padded)\n"
        "        return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths)], dim)\n"
        "\n"
        "    class Cut(torch.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, x, dim):\n"
        "            ctx.length, ctx.dim = x.shape[dim], dim\n"
        "            n, rank = dist.get_world_size(), dist.get_rank()\n"
        "            return x.tensor_split(n, dim)[rank].clone()\n"
        "\n"
        "        @staticmethod\n"
        "        def backward(ctx, grad):\n"
        "            whole = torch.arange(ctx.length)\n"
        "            lengths = [len(part) for part in whole.tensor_split(dist.get_world_size())]\n"
        "            return put_together(grad, lengths, ctx.dim), None\n"
        "\n"
        "    def sequence_shard(x, dim=1):\n"
        "        return Cut.apply(x, dim)",
    ),
    mistakes=SHARD,
    advice={
        Diagnosis.ALIASED: "A slice shares memory with x: return a copy of it, x_part.clone().",
        Diagnosis.FORBIDDEN_CALL: "all_gather in backward is all you need, and all that is"
        " allowed.",
        Diagnosis.WRONG_SHAPE: "Along dim the parts have the lengths that tensor_split gives; the"
        " other dimensions are those of x.",
        Diagnosis.WRONG_TYPE: "The rank's part is returned.",
        Diagnosis.WRONG_GRADIENT: "The gradient of x has the shape of x, and at the positions of"
        " rank r it is what rank r's part has got.",
        Diagnosis.WRONG_VALUE: "Rank r has part r of tensor_split(n, dim).",
        Diagnosis.WRONG_DTYPE: _DTYPE,
        Diagnosis.DEADLOCK: _DEADLOCK,
        Diagnosis.TIMEOUT: _TIMEOUT,
    },
)

sequence_unshard = Exercise(
    signature="sequence_unshard(x_shard: Tensor, full_length: int, dim: int = 1) -> Tensor",
    summary="the whole of which each rank has a part along dim; backward takes the part",
    inputs=shards,
    adapter=joined_in_rank,
    expected=whole_of,
    least=moved,
    allowed=frozenset({"all_gather"}),
    hints=(
        "Forward is the all-gather that you know. Backward: every rank computes the same loss of"
        " the same whole. What is the gradient of the whole on each rank, and which part of it"
        " belongs to x_shard?",
        "Forward: pad to the longest part, all_gather, cut each part to its length, put them"
        " together along dim. Backward: the rank's own part of the gradient; nothing is sent.",
        "lengths = [len(t) for t in torch.arange(full_length).tensor_split(n)]. After the"
        " all_gather, parts = [p.narrow(dim, 0, k) for p, k in zip(parts, lengths)]. Either put"
        " parts[rank] = x_shard before torch.cat(parts, dim), and autograd knows the rest; or write"
        " a torch.autograd.Function whose backward returns grad.tensor_split(n, dim)[rank], and"
        " None for the other arguments.",
        "This is the whole answer:\n"
        "    def put_together(part, lengths, dim):\n"
        "        shape = list(part.shape)\n"
        "        shape[dim] = max(lengths)\n"
        "        padded = part.new_zeros(shape)\n"
        "        padded.narrow(dim, 0, part.shape[dim]).copy_(part)\n"
        "        parts = [torch.empty_like(padded) for _ in lengths]\n"
        "        dist.all_gather(parts, padded)\n"
        "        return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths)], dim)\n"
        "\n"
        "    class Join(torch.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, part, lengths, dim):\n"
        "            ctx.dim = dim\n"
        "            return put_together(part, lengths, dim)\n"
        "\n"
        "        @staticmethod\n"
        "        def backward(ctx, grad):\n"
        "            n, rank = dist.get_world_size(), dist.get_rank()\n"
        "            return grad.tensor_split(n, ctx.dim)[rank], None, None\n"
        "\n"
        "    def sequence_unshard(x_shard, full_length, dim=1):\n"
        "        whole = torch.arange(full_length)\n"
        "        lengths = [len(part) for part in whole.tensor_split(dist.get_world_size())]\n"
        "        return Join.apply(x_shard, lengths, dim)",
    ),
    mistakes=UNSHARD,
    advice={
        Diagnosis.ALIASED: "With one rank the whole is x_shard: return a copy of it.",
        Diagnosis.FORBIDDEN_CALL: "all_gather in forward is all you need, and all that is allowed.",
        Diagnosis.WRONG_SHAPE: "Along dim the whole has full_length positions; the other"
        " dimensions are those of x_shard.",
        Diagnosis.WRONG_TYPE: "The whole tensor is returned. all_gather fills a list, and returns"
        " nothing.",
        Diagnosis.WRONG_GRADIENT: "The gradient of x_shard has its shape, and is the part of the"
        " whole gradient that lies where x_shard lies in the whole.",
        Diagnosis.WRONG_VALUE: "Which part lies at the place that is named, and is it cut to its"
        " own length?",
        Diagnosis.WRONG_DTYPE: _DTYPE,
        Diagnosis.DEADLOCK: _DEADLOCK,
        Diagnosis.TIMEOUT: _TIMEOUT,
    },
)
