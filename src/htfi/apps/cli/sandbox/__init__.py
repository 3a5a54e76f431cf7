"""`htfi sandbox`: tries a candidate against the champion in a confined process."""
