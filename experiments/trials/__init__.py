"""What the experiments of all papers share: claims, the command, streams, the clock."""
