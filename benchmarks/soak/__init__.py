"""A soak: many users at once for minutes, and a check of what they must find in the end.

`plan` says what users do and so what must be there, in plain Python; `drive` does it through the public API;
`meters` measures; `worker` and `pool` are the processes; `holdings` reads everything that is stored, and
`findings` compares.
"""
