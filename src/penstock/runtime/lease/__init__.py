"""One driver at a time owns a checkpoint directory.

`owner` describes a driver and whether it is alive, `files` stores leases, and `lease` takes, renews, checks and
releases one.
"""
