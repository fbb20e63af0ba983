"""A benchmark of hung and mismatched ranks: does headcount find them, and say why?

Programs for ``torch.distributed``, each a function that every rank of a small world
runs, stand in the modules of this package, one for each class of error.  A wrong
program has a right twin beside it.  Run ``python -m benchmarks.hangs``.
"""
