"""Language models: folders, vocabularies, KV sessions, shared noise, and answers within grammars."""
