"""The jobs, written once against Penstock; for PyFlink the same text runs with the import swapped."""
