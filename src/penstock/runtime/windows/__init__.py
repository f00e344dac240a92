"""Window operators: the general one, and quicker ones for the windows most programs use.

Start at `builder`: it checks a definition and picks the operator.
"""
