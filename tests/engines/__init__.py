"""Work on a cluster of this machine."""
