"""CEP inside a task: the automaton a pattern is compiled to, its runs, and the operator that feeds it."""
