"""`htfi approvals`: decisions of a run that wait for people."""
