"""From unresolved expressions and relations to transformations."""
