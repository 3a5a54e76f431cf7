"""Orders to and from venues: FIX sessions and messages as pure functions."""
