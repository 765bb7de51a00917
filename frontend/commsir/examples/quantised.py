"""The former name of `commsir.examples.quantized`, which programs may still import."""

from commsir.examples.quantized import main, quantized

__all__ = ["main", "quantised"]

quantised = quantized  # codespell:ignore

if __name__ == "__main__":
    main()
