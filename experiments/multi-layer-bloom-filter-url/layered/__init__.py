"""The experiments of the paper on multi-layer Bloom filters, run on ours."""
