"""What a person asks for, as frozen values, and the suites that these become.

The command line makes the values of flags, and the functions of Python make them of their arguments.
"""
