"""A person's own script, run on recorded ranks: ``headcount run train.py``.

Its door: :func:`headcount.script.command.run_script_command`.
"""
