"""The oracle in small: no promise is broken, and each planted fault is found."""
