"""The fit of the priors of what is known of variance before it comes."""
