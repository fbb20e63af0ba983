"""The house as a whole: JupyterLab in a browser, the sandbox, installations, tools, rules."""
