"""session: what happens when a session ends (MemMA 3.4).

Turns that a failed or broken-off run left waiting are remembered and the last episode is written. Then memory
is examined: probes are made from the session's turns, answered from memory and graded; what failed is
repaired and asked again; what did not help is rolled back. Last, memory is kept in order and all of it is
committed.
"""
