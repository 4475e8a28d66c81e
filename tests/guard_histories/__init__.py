"""The machine of random histories in small: no wrong "no", and each planted fault is found."""
