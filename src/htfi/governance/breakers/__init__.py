"""Circuit breakers on reasoning: sequential tests of what decisions, outcomes, news and drafts show."""
