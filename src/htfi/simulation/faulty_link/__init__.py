"""A bad network on one machine: a proxy that spoils bytes in real time, and streams in memory under virtual time."""
