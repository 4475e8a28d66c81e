"""The experiments of the paper on time-decaying Bloom filters, run on ours."""
