"""A person's own script, run on recorded ranks: ``python -m grader run train.py``.

Its door: :func:`grader.script.command.run_script_command`.
"""
