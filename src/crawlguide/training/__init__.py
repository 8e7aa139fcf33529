"""The school: models are fitted here, away from the guide, and leave as files of numbers."""
