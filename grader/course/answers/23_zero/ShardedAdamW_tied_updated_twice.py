"""A tied weight is updated once for each time that it is in params. It is one parameter:
list(dict.fromkeys(params)) has each of them once."""
# exercise: ShardedAdamW
# diagnosis: wrong_value
# or: STATE = "one for each time"

STATE = "shared"


class ShardedAdamW(Sharded):
    def __init__(self, params, **options):
        params = list(params)
        super().__init__(params, **options)
        rows = {p: Row([p]) for p in self.params}
        self.times = {p: sum(p is other for other in params) for p in self.params}
        shared = STATE == "shared"
        self.rows = [rows[p] if shared else Row([p]) for p in params if p.requires_grad]

    def number(self, p):
        count = super().number(p)
        return count if STATE == "shared" else -(-count // self.times[p])
