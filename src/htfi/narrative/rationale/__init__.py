"""Why a forecast is what it is: the sentences of each version, their figures, what drove it, and amendments."""
