"""The WebSocket door at `/ws`."""
