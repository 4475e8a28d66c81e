"""The example shop: over HTTP, in a browser, and with many visitors."""
