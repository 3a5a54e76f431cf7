"""The main path: one event in, one recorded and released decision out. Read `loop` first."""
