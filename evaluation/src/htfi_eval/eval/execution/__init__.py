"""`htfi eval execution`: algorithms and routing on recorded quotes of several venues."""
