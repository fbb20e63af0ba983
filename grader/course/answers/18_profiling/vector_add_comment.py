# exercise: VECTOR_ADD_CPP
# diagnosis: not_attempted
# hint: Check first, then compute
VECTOR_ADD_CPP = r"""
// later
"""
