"""CEP inside a task: the automaton of a pattern, its runs, and the operator that feeds it."""
