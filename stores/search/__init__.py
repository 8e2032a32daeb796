"""The search room: which entries of a scope answer a query, and how well.

`search` asks, a `snapshot` is what it looks through, `signals` say what speaks for an entry, `ranker` weighs
them.
"""
