"""EvolveMem's loop over theta: its space, its diagnosis, its nodes, its report."""
