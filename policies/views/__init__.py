"""Pages of `policies`."""
