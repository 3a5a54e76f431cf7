"""Market state: ticks and bars become features, bars and a regime, incrementally."""
