"""An adversary that stays: ``make attack``.

Known attacks are combined with other places, moments, ranks and exercises, messages are forged
field by field, and each variant is handed in through the real ``grade`` in a real sandbox.  A
variant succeeds if it earns points that it has not worked for, stalls the judge, puts the blame on
the grader, or learns a secret.

``payloads`` holds what is attempted, ``forgeries`` draws messages and values, ``variants`` puts a
submission together, ``trial`` hands it in and says what came of it.
"""
