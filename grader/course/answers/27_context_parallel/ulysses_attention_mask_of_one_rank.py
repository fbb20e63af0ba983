"""With causal=True a mask of tokens × tokens is repeated for the tokens of every rank. You have
the whole sequence here, in order: the mask is n·tokens × n·tokens, and query i sees keys j ≤ i."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def hide(scores, rank, owner):
    n = dist.get_world_size()
    tokens = scores.shape[1] // n
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    return scores.masked_fill(later.repeat(n, n), -math.inf)
