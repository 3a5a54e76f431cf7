"""The htfi command."""
