"""The gate that stands before every order: `judge(state, intent)` says what speaks against it."""
