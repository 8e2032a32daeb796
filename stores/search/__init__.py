"""The search room: which entries of a scope answer a query, and how well.

`search` asks, `copies` is what it looks through, `signals` tell what speaks for an entry, `ranker` weighs it.
"""
