"""One driver at a time owns a checkpoint directory.

`owner` says who a driver is and whether it lives, `files` where leases are kept, `lease` how one is taken, renewed,
checked and given back.
"""
