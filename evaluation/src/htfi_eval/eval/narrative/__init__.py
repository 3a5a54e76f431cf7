"""`htfi eval narrative`: what reading news adds to prices alone."""
