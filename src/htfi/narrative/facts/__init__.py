"""What a news item states, as typed facts: figures with their roles, policy decisions, who did what to whom."""
