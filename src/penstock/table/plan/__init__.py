"""The planner: translates unresolved expressions and relations to transformations."""
