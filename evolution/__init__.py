"""The loop that changes the retrieval configuration by its own failures (EvolveMem, arXiv 2605.13941).

`evolve` builds the graph; `lab` evaluates a configuration through the real recall graph on `splits` of a data
set; `run` is the whole experiment with its held-out figures. What is of theta alone stands in `theta`.
"""
