"""Ways to guess what a target will say next. Wiring gives one of them to an author."""
