"""The Project API server; see ``microtvm_api_server.py`` above. Nothing here needs more than Python 3.8."""
