"""What a login node's processes say about who works on it: kept on the node but for counts."""
