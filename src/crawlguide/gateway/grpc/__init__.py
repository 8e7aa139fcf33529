"""The door for gRPC, and what any service over gRPC needs."""

DETAILS = "grpc-status-details-bin"  # the trailer with the details of an error, as google.rpc has it
