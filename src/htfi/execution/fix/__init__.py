"""FIX 4.4 and 5.0 SP2 (FIXT.1.1) without clock or I/O: framing, dictionary, checks, session, messages of orders."""
