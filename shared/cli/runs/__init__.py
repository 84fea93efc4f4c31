"""`jaato runs`: what was run, here or by another process: look at it, stop it, go on with it, clear it away."""
