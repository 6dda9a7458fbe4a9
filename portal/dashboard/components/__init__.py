"""The parts pages are made of: one module a family, all registered on one template library."""
