"""What changed between two documents of one central bank, sentence by sentence; and the last document of each."""
