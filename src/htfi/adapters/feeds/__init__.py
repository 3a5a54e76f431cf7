"""Sources of rows: files, standard input, WebSocket."""
