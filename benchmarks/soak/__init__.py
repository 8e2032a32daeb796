"""A soak: many users at once for minutes, and a check of what they must find in the end.

`plan` says what users do and so what must be there, in plain Python; `worker` is a process that does it
through the public API; `meters` measures; `check` compares all that is stored with what must be.
"""
