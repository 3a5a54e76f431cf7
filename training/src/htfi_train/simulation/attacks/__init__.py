"""Attacks on news, made from a seed: what the sanitiser is judged by and its weights are learned from."""
