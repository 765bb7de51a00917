"""Matmuls beside collectives, eager and compiled."""
