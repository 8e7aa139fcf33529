"""How a tell walks: intake, record, discover, lessons for those who learn, ack."""
