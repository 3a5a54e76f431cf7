"""From forecasts to orders: sizing, the gate that every order passes, orders and their states, FIX, algorithms."""
