"""Tasks and stages: operator chains, inputs, outputs and the clocks between them."""
