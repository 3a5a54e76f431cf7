"""Free texts and documents that programs ask for: a batch that is written side by side, text as it comes."""
