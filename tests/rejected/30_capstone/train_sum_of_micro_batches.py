# exercise: train
# diagnosis: wrong_value
# hint: summed over micro-batches
# on: 30_capstone
def pipeline_in_group(stage, order, inputs, targets, loss_fn, shape, group):
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    dtype = next(stage.parameters()).dtype
    in_flight, loss, outputs_sent, gradient_sent = {}, 0.0, {}, None
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, group=group, group_src=rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank == last:
                y = loss_fn(y, targets[i])
                loss += y.item() / len(targets)
            else:
                outputs_sent[i] = dist.isend(y.detach(), group=group, group_dst=rank + 1)
            in_flight[i] = x, y
        else:
            x, y = in_flight.pop(i)
            gradient = None
            if rank < last:
                gradient = torch.empty(shape, dtype=dtype)
                dist.recv(gradient, group=group, group_src=rank + 1)
                outputs_sent.pop(i).wait()
            y.backward(gradient)
            if rank > 0:
                if gradient_sent is not None:
                    gradient_sent.wait()
                gradient_sent = dist.isend(x.grad, group=group, group_dst=rank - 1)
    if gradient_sent is not None:
        gradient_sent.wait()
    return loss if rank == last else None
