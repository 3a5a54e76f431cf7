"""A venue on recorded market data: orders wait in its queue, and are filled as the data would have filled them."""
