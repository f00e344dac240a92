"""Window operators: a general one, and faster ones for the windows that most programs use.

Start at `builder`: it checks a window definition and selects the operator.
"""
