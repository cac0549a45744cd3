"""`redline mcp`: the commands as tools of the Model Context Protocol, for assistants that measure."""
