"""A tied weight is updated once for each time that it is in params. It is one parameter:
list(dict.fromkeys(params)) has each of them once."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def __init__(self, params, **options):
        params = list(params)
        super().__init__(params, **options)
        rows = {p: Row([p]) for p in self.params}
        self.rows = [rows[p] for p in params if p.requires_grad]
