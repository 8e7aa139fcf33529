"""The door for message buses: NATS and Kafka."""
