"""Markets that are simulated: venues that fill orders against recorded prices."""
