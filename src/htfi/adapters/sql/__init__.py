"""Stores of the service in SQL, over SQLAlchemy: SQLite in a file, or PostgreSQL by pg8000."""
