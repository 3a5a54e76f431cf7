"""Language models: folders, vocabularies, sessions, noise, and answers held to a form."""
