"""Tokenizers of Hugging Face folders behind the decoding port, and the training of our own."""
