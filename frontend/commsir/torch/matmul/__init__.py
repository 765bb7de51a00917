"""Matmuls next to collectives, eager and compiled."""
