"""JupyterLab as the course opens it: ``make lab``."""
