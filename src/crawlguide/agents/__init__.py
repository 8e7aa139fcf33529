"""The door for language-model agents: a server of the Model Context Protocol, which is not the guide protocol."""
