"""The door for gRPC, and what any service over gRPC needs."""
