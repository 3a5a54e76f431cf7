"""What central banks decide: actions on rates and purchases, with sizes, levels and votes."""
