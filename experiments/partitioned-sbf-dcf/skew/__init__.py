"""The experiments of the paper on partitioned filters, run on the filters of this package."""
