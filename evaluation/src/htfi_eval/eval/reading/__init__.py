"""`htfi eval reading`: what the reader of news understands, on labelled lines, figures, official texts and prices."""
