"""What is known of variance before it comes, judged on staged releases: the priors' fit, and the first hour."""
