"""Where events come from: files, standard input and WebSockets, read in blocks. Wiring opens them."""
